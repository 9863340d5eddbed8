"""GraphQL: the REST API and the live protocol, asked for by fields.

A field stands for a REST call or a subscription and is answered by the same handler, so scopes,
access rules, limits, preconditions, idempotency keys and error codes are the same. What is GraphQL
about it is here:

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

from __future__ import annotations

from connections.connection_registry import ConnectionRegistry
from connections.subscription_kinds import Kinds
from foundation.asgi import App
from rillbase_server.graphql.assembly import Schemas
from rillbase_server.graphql.http import GraphqlHttp
from rillbase_server.graphql.socket import GraphqlSocket


def around(app: App, kinds: Kinds, registry: ConnectionRegistry) -> App:
    """Return the application with GraphQL in front of it."""
    schemas = Schemas()
    return GraphqlSocket(GraphqlHttp(app, schemas), schemas, kinds, registry)
