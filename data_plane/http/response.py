"""The response to a call."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field

from foundation.api.rendering import to_json
from foundation.asgi import App, Receive, Scope, Send
from foundation.errors import ApiError
from foundation.request_context import request_id

PROBLEM_TYPE = "application/problem+json"


@dataclass(slots=True)
class CallResponse:
    """Status, headers, and a body that is complete or streams."""

    status: int = 200
    body: bytes | AsyncIterator[bytes] = b""
    headers: dict[str, str] = field(default_factory=dict)
    media_type: str = "application/json"
    #: Responds instead of the fields above. It is called with the headers to add.
    app: Callable[[Mapping[str, str]], App] | None = None

    async def answer(
        self, scope: Scope, receive: Receive, send: Send, more_headers: Mapping[str, str]
    ) -> None:
        """Respond to a request."""
        if self.app is not None:
            await self.app(more_headers)(scope, receive, send)
        else:
            await self.send(send, more_headers, with_body=scope["method"] != "HEAD")

    async def send(self, send: Send, more_headers: Mapping[str, str], *, with_body: bool) -> None:
        """Send the response. The length of a stream is not known beforehand."""
        headers = {**more_headers, **self.headers}
        raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]
        if self.body or self.status not in (204, 304):
            raw.append((b"content-type", self.media_type.encode()))
        if isinstance(self.body, bytes):
            if self.status not in (204, 304):
                raw.append((b"content-length", b"%d" % len(self.body)))
            await send({"type": "http.response.start", "status": self.status, "headers": raw})
            await send({"type": "http.response.body", "body": self.body if with_body else b""})
            return
        await send({"type": "http.response.start", "status": self.status, "headers": raw})
        if with_body:
            async for part in self.body:
                await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


def json_answer(
    value: object, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> CallResponse:
    """Respond with plain values as JSON."""
    return CallResponse(status, to_json(value), dict(headers or {}))


def problem_answer(error: ApiError) -> CallResponse:
    """Respond with an error."""
    body = to_json(error.problem(request_id.get()))
    return CallResponse(error.status, body, dict(error.headers), PROBLEM_TYPE)
