"""The caller of a request, for log lines and traces, and what authentication reads of the request.

The edge sets the request id, authentication adds tenant and principal. Each request and each
task runs in its own context, so nothing leaks from one to the next.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Protocol

from foundation.asgi import TransportConnection

request_id: ContextVar[str] = ContextVar("request_id", default="")
tenant_id: ContextVar[str] = ContextVar("tenant_id", default="")
principal: ContextVar[str] = ContextVar("principal", default="")
#: The code of the error with which the request is answered.
error_code: ContextVar[str] = ContextVar("error_code", default="")
client_address: ContextVar[str] = ContextVar("client_address", default="")
#: The connection of the request; None where our own server did not accept it.
connection: ContextVar[TransportConnection | None] = ContextVar("connection", default=None)


def authenticated(actor: str) -> None:
    """Record whose credentials were verified. Their connection then has more rights."""
    principal.set(actor)
    transport = connection.get()
    if transport is not None:
        transport.authenticated()


class RequestHead(Protocol):
    """A request without its body."""

    @property
    def method(self) -> str | None: ...

    @property
    def scheme(self) -> str | None: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    @property
    def COOKIES(self) -> Mapping[str, str]: ...  # noqa: N802 -- Django's name

    def get_host(self) -> str: ...
