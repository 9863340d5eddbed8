"""Online aggregates as a product: sums, counts and similar values that are always up to date.

`models` holds what the control plane stores; `definitions` creates, changes and drops aggregates.
The values are in the storage node, which `facts` locates. `api` accepts events and answers queries,
`live` serves subscriptions, and `following` keeps views in step with their collections.
"""
