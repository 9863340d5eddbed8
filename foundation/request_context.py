"""Who is asking, for log lines and traces.

The edge sets the request id, authentication adds tenant and principal. Each request and each
task runs in its own context, so nothing leaks from one to the next.
"""

from __future__ import annotations

from contextvars import ContextVar

from foundation.asgi import Connection

request_id: ContextVar[str] = ContextVar("request_id", default="")
tenant_id: ContextVar[str] = ContextVar("tenant_id", default="")
principal: ContextVar[str] = ContextVar("principal", default="")
client_address: ContextVar[str] = ContextVar("client_address", default="")
#: What the request came over; None where our own server did not accept it.
connection: ContextVar[Connection | None] = ContextVar("connection", default=None)


def authenticated(actor: str) -> None:
    """Note whom credentials were verified to belong to. Their connection has more rights then."""
    principal.set(actor)
    found = connection.get()
    if found is not None:
        found.authenticated()
