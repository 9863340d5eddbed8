"""Types made from JSON Schemas: of tenants' collections, and of the control plane's REST answers.

names    from names of collections and properties to names that GraphQL allows
shapes   from a JSON Schema to what GraphQL can say of it
values   scalars, and what Extended JSON writes as objects
types    from shapes to output and input types
filters  from shapes to inputs of filters and sorts, and from those to filters
fields   the fields of one collection
"""
