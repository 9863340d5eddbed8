"""Access to the storage node for the product's processes.

`wire` is one connection, `client` makes calls in the name of a tenant, `feeds` follows
subscriptions, `admin` is for threads and tasks. A connection belongs to one tenant from its first
command to its last, so no command can ever run on behalf of another tenant.
"""
