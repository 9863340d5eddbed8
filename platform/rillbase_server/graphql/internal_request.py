"""Calls of the control plane inside the process.

They pass through the same layers as external requests: authentication, limits, views and audit.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import TypeAlias
from urllib.parse import quote, urlencode

from strawberry.dataloader import DataLoader

from foundation.api.rendering import exact_json
from foundation.asgi import App, Message, Scope
from foundation.errors import CATALOGUE, ApiError, FieldProblem, Internal
from foundation.json_types import JsonObject, JsonValue

#: The members of the scope that an internal call inherits from its request.
_KEPT = frozenset(
    {b"authorization", b"cookie", b"host", b"origin", b"rillbase-key", b"rillbase-tenant"}
    | {b"rillbase-act-as", b"x-csrf-token", b"user-agent"}
)
_FAILED = 400


#: A path and its query.
Reading: TypeAlias = tuple[str, bytes]


@dataclass(slots=True)
class InternalRequests:
    """Makes internal calls of the application on behalf of a request."""

    app: App
    scope: Scope
    #: Calls that read. Fields that read the same resource share one, until the next change.
    _read: DataLoader[Reading, JsonObject] = field(init=False)

    def __post_init__(self) -> None:
        self._read = DataLoader(load_fn=self._read_all)

    async def get(self, path: str, **query: str | int | None) -> JsonObject:
        parameters = {name: value for name, value in query.items() if value is not None}
        return await self._read.load((path, urlencode(parameters).encode()))

    async def post(self, path: str, body: JsonValue, **headers: str) -> JsonObject:
        return _object(await self._change("POST", path, exact_json(body), headers))

    async def patch(self, path: str, body: JsonValue, **headers: str) -> JsonObject:
        return _object(await self._change("PATCH", path, exact_json(body), headers))

    async def delete(self, path: str, **headers: str) -> None:
        await self._change("DELETE", path, b"", headers)

    async def _change(
        self, method: str, path: str, body: bytes, headers: dict[str, str]
    ) -> JsonValue:
        self._read.clear_all()
        return await self._call(method, path, b"", body, headers)

    async def _read_all(self, readings: list[Reading]) -> list[JsonObject | BaseException]:
        """Make calls concurrently. A failed call fails only the fields that use it."""
        calls = (self._call("GET", path, query, b"", {}) for path, query in readings)
        answers = await asyncio.gather(*calls, return_exceptions=True)
        return [
            answer if isinstance(answer, BaseException) else _object(answer) for answer in answers
        ]

    async def _call(
        self, method: str, path: str, query: bytes, body: bytes, headers: dict[str, str]
    ) -> JsonValue:
        receive = _Receive(body)
        answer = _ResponseBuffer()
        sent = {**headers, "Content_Length": str(len(body))} if body else headers
        await self.app(self._scope(method, path, query, sent), receive, answer.send)
        content: JsonValue = json.loads(answer.body) if answer.body else None
        if answer.status >= _FAILED:
            raise _as_error(content)
        return content

    def _scope(self, method: str, path: str, query: bytes, headers: dict[str, str]) -> Scope:
        forwarded = [pair for pair in self.scope["headers"] if pair[0] in _KEPT]
        added = [
            (name.replace("_", "-").lower().encode(), value.encode("latin-1"))
            for name, value in headers.items()
        ]
        schemes = {"ws": "http", "wss": "https"}
        scheme = self.scope.get("scheme", "http")
        return {
            **self.scope,
            "type": "http",
            "method": method,
            "scheme": schemes.get(scheme, scheme),
            "path": path,
            "raw_path": path.encode(),
            "query_string": query,
            "headers": [*forwarded, *added, (b"content-type", b"application/json")],
            "state": dict(self.scope.get("state", {})),
        }


class _Receive:
    """Delivers the body, then never disconnects."""

    def __init__(self, body: bytes) -> None:
        self._body: bytes | None = body

    async def __call__(self) -> Message:
        body, self._body = self._body, None
        if body is None:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": body, "more_body": False}


class _ResponseBuffer:
    """Collects the application's response."""

    def __init__(self) -> None:
        self.status = 0
        self.body = b""

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        elif message["type"] == "http.response.body":
            self.body += message.get("body", b"")


def _object(content: JsonValue) -> JsonObject:
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise TypeError("the control plane returned something other than an object")
    return content


def _as_error(content: JsonValue) -> ApiError:
    """Convert a problem document to an error."""
    problem = content if isinstance(content, dict) else {}
    family = CATALOGUE.get(str(problem.get("code")), Internal)
    problems = problem.get("errors")
    error = family(
        str(problem.get("detail", "")),
        errors=[
            FieldProblem(str(item["pointer"]), str(item["code"]), str(item["detail"]))
            for item in (problems if isinstance(problems, list) else [])
            if isinstance(item, dict)
        ],
    )
    error.is_noted = True  # by the handler that raised it
    return error


def path_of(*parts: str) -> str:
    """Return a path of the control plane. Each part is quoted as one segment."""
    return "/api/v1/" + "/".join(quote(part, safe="") for part in parts)
