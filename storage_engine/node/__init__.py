"""The storage node as the product's processes talk to it.

`wire` is one connection, `client` makes calls in the name of a tenant, `feeds` follows
subscriptions, `admin` is for threads and tasks. A connection belongs to one tenant from its first
command to its last, so no command can ever run in another's name.
"""
