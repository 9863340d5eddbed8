"""Real-time queries: the grid that matches writes with them, and the hubs that send changes to
clients.
"""
