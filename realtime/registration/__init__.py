"""Registers queries with the grid.

subscribe_request  the subscriber's request, validated like `POST query`, and whether a live query
                   supports it
initial_rows       its rows and the snapshot that they were read in
registration       sends positions, rows and definition to the nodes, for several queries at a time
renewals           reads queries again, on Celery, because a node lost rows after a window
fetches            reads single documents to which rows newly refer, on Celery, too
"""
