"""How a query is registered with the grid.

subscribe_request  what a subscriber asks for, validated like `POST query`, and whether it can be
                   watched
initial_rows       its rows and the snapshot that they were read in
registration       sends positions, rows and definition to the nodes, for several queries at a time
renewals           queries read again, on Celery, because a node lost rows behind a window
fetches            single documents that rows newly refer to, likewise
"""
