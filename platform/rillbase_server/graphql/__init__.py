"""GraphQL: the REST API and the live protocol as fields.

A field corresponds to a REST call or a subscription and uses the same handler, so scopes, access
rules, limits, preconditions, idempotency keys and error codes are the same. This package contains
only the GraphQL part:

    documents    fields over any collection, documents as JSON
    writes       the fields that write one document
    groups       fields over groups of documents, rows as JSON
    aggregates   fields over any aggregate, rows as JSON
    datasets     a field over any dataset, rows as JSON
    typed        fields over the collections that have a JSON Schema, with types made from it
    topics       fields over topics
    control      tenants, members, keys, collections and the rest of the control plane
    live         subscriptions: frames of the live protocol as payloads
    assembly     one schema per tenant, made from all of these, in a bounded cache
    operations   reading, checking and running what a client sends; persisted queries
    http, socket how operations arrive
"""
