"""Real-time queries: the grid that matches writes with them, the connections that carry answers."""
