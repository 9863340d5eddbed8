"""How a query is registered with the grid.

subscribe_request     what a subscriber asks for, validated like `POST query`, and whether it can be
                      watched
initial_rows          its rows and the snapshot that they were read in
register              sends positions, rows and definition to the nodes
registration_batcher  queries that wait at the same time share a snapshot and a call
renewals              queries read again, on Celery, because a node lost rows behind a window
fetches               single documents that rows newly refer to, likewise
"""
