"""A call of the data plane that does not arrive over HTTP.

A WebSocket message or a GraphQL field corresponds to a REST call and is answered by its handler,
with the same scopes, rules, preconditions and idempotency keys.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from urllib.parse import urlencode

from data_plane.calls import Call
from data_plane.http import CallHead, CallResponse, RequestBody
from foundation.asgi import Message
from rillbase_native import Value
from tenants.credentials.facts import TenantFacts
from tenants.principals import Principal

Handler = Callable[[Call], Awaitable[CallResponse]]


@dataclass(slots=True)
class InternalCall:
    """A REST call and its handler."""

    handler: Handler
    method: str
    path: str
    parameters: dict[str, str]
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    query: dict[str, str] = field(default_factory=dict)
    #: A body that is a document and has been parsed, instead of `body`.
    document: Value | None = None

    async def perform(self, principal: Principal, tenant: TenantFacts) -> bytes:
        """Execute it for an authenticated caller and return the body of the response."""
        answer = await self.handler(self._call(principal, tenant))
        if not isinstance(answer.body, bytes):
            raise TypeError("an answer to a message is complete")
        return answer.body

    def _call(self, principal: Principal, tenant: TenantFacts) -> Call:
        raw = [(name.lower().encode(), text.encode()) for name, text in self.headers.items()]
        head = CallHead(
            {
                "method": self.method,
                "path": self.path,
                "headers": raw,
                "query_string": urlencode(self.query).encode() if self.query else b"",
            }
        )
        body = RequestBody(head, self._receive)
        return Call(head, body, principal, tenant, self.parameters, document=self.document)

    async def _receive(self) -> Message:
        return {"type": "http.request", "body": self.body, "more_body": False}
