"""Types made from JSON Schemas: of tenants' collections, and of the control plane's REST answers.

shapes    from a JSON Schema to what GraphQL can say of it
values    scalars, and what Extended JSON writes as objects
types     from shapes to output and input types
filters   from shapes to inputs of filters and sorts, and from those to filters
declared  collections whose documents have a shape, and how their types are called
lookups   documents that others refer to, below those
groups    the fields that group the documents of one collection
fields    the fields of one collection
"""
