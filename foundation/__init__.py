"""Shared infrastructure, independent of tenants' data.

Errors, settings, the request's scope (with row-level security), strict JSON, cursors,
preconditions, idempotency, limits, the outbound HTTP client, logs, metrics, tracing and
background tasks live here. Nothing in this package imports another package of the project.
"""
