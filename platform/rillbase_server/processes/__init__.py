"""The processes that serve no clients: their services, and their common runner.

`table.py` lists them, `supervision.py` keeps the services of a process running, and `runner.py` is
the process around them.
"""
