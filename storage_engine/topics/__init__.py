"""Topics as a product.

`forms`, `actions`, `views` are the control plane. `facts`, `places`, `times`, `shown` are what a
call of the data plane needs; the calls themselves are in `api/`. `removal`, `cleaner` and
`deliveries` are work for tasks.
"""
