"""The processes that serve no clients: what each runs, and the one runner of all of them.

`table.py` lists them, `supervision.py` keeps the services of a process running, and `runner.py` is
the process around them.
"""
