"""Who is asking, for log lines and traces.

The edge sets the request id, authentication adds tenant and principal. Each request and each
task runs in its own context, so nothing leaks from one to the next.
"""

from __future__ import annotations

from contextvars import ContextVar

request_id: ContextVar[str] = ContextVar("request_id", default="")
tenant_id: ContextVar[str] = ContextVar("tenant_id", default="")
principal: ContextVar[str] = ContextVar("principal", default="")
client_address: ContextVar[str] = ContextVar("client_address", default="")
