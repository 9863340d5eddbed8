"""Online aggregates as a product: sums, counts and the like that are right at every moment.

`models` is what the control plane keeps, `definitions` makes, changes and drops them. The numbers
are in the storage node, which `facts` leads to. `api` takes events and answers queries, `live`
subscribes, `following` keeps views over collections in step with their collections.
"""
