"""Types generated from JSON Schemas of collections and of the control plane's REST responses.

shapes    the part of a JSON Schema that GraphQL can express
values    scalars, and values that Extended JSON writes as objects
types     from shapes to output and input types
filters   from shapes to inputs of filters and sorts, and from those to filters
typed_collection  collections whose documents have a shape, and the names of their types
lookups   referenced documents as fields of the referring ones
groups    the fields that group the documents of one collection
fields    the fields of one collection
"""
