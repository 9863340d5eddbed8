"""Django under ASGI, with a bounded set of threads that stay.

Django's own ASGI handler makes a thread for each request, hops to it several times, and builds
new database wrappers in it each time; measured, that costs more than the rest of a read. Views
here are synchronous, so a request makes one hop to a thread of a small pool, runs there from the
first signal to the last, and comes back with its answer. The pool is also the bound on how many
requests one process works on at once; others wait in its queue.

A body is read before its view can ask who sends it, so it is bounded by what the control plane
takes, a small fraction of what the data plane does. Whatever takes large bodies stands before
this handler and looks at the credentials first (`data_plane.calls`).

The route that matched is noted in the scope's state for the edge: metrics, log lines and spans
are labelled by it and never by the raw path.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from io import BytesIO
from typing import IO

import django
from django.conf import settings
from django.core import signals
from django.core.checks.urls import check_url_config
from django.core.handlers.asgi import ASGIRequest, get_script_prefix
from django.core.handlers.base import BaseHandler
from django.db import close_old_connections, reset_queries
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import ResolverMatch, set_script_prefix

from foundation import request_context
from foundation.api.problems import problem_response
from foundation.asgi import Receive, Scope, Send
from foundation.environment import environment
from foundation.errors import BodyTooLarge, InvalidParameter
from rillbase_server.gate import Gate
from rillbase_server.request_headers import LazyHeadersRequest

THREADS = 16
#: Maximum number of concurrent requests, and how long others wait for them.
AT_ONCE = 4
MAX_WAIT_S = 0.02

_HANDED_BACK = (request_context.tenant_id, request_context.principal)


class RoutedHandler(BaseHandler):
    """Answers HTTP by Django's views; refuses WebSockets, which Django does not know."""

    def __init__(self, body_max_bytes: int, threads: int = THREADS) -> None:
        super().__init__()
        self._body_max_bytes = body_max_bytes
        self.load_middleware(is_async=False)
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="request")
        self._gate = Gate(AT_ONCE, MAX_WAIT_S)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            _check_length(_announced(scope), self._body_max_bytes)
            body = await _read_body(receive, self._body_max_bytes)
        except BodyTooLarge as error:
            await self._send(problem_response(error), send)
            return
        if body is None:
            return
        loop, context = asyncio.get_running_loop(), copy_context()
        await self._gate.enter()
        try:
            response = await loop.run_in_executor(
                self._threads, context.run, self._respond, scope, body
            )
        finally:
            self._gate.leave()
        for variable in _HANDED_BACK:
            variable.set(context[variable])
        try:
            await self._send(response, send)
        finally:
            if response.streaming:
                await loop.run_in_executor(self._threads, response.close)

    def resolve_request(self, request: HttpRequest) -> ResolverMatch:
        match = super().resolve_request(request)
        if isinstance(request, ASGIRequest):
            request.scope["state"]["route"] = str(match.route)
        return match

    def _respond(self, scope: Scope, body: IO[bytes]) -> HttpResponseBase:
        """Run a request from start to end in this thread. Its connections are given back."""
        set_script_prefix(get_script_prefix(scope))
        signals.request_started.send(sender=self.__class__, scope=scope)
        try:
            request = LazyHeadersRequest(scope, body)
        except UnicodeDecodeError:
            body.close()
            return problem_response(InvalidParameter("The path is not valid UTF-8."))
        response: HttpResponseBase = self.get_response(request)
        if not response.streaming:
            response.close()
        return response

    async def _send(self, response: HttpResponseBase, send: Send) -> None:
        await send(
            {
                "type": "http.response.start",
                "status": response.status_code,
                "headers": _headers(response),
            }
        )
        if isinstance(response, HttpResponse):
            await send({"type": "http.response.body", "body": response.content})
            return
        loop, parts = asyncio.get_running_loop(), iter(response)
        while part := await loop.run_in_executor(self._threads, _next_part, parts):
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


async def _read_body(receive: Receive, max_bytes: int) -> IO[bytes] | None:
    """Return the whole body, or None when the client has gone. Raise when it is too large."""
    body = BytesIO()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body.write(message.get("body", b""))
        _check_length(body.tell(), max_bytes)
        if not message.get("more_body", False):
            body.seek(0)
            return body


def _check_length(length: int, max_bytes: int) -> None:
    if length > max_bytes:
        # The rest is not read, so the connection must end.
        raise BodyTooLarge(
            f"The body may have at most {max_bytes} bytes.", headers={"Connection": "close"}
        )


def _announced(scope: Scope) -> int:
    """Return the length that the client says its body has, or 0."""
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            return int(value)
    return 0


def _headers(response: HttpResponseBase) -> list[tuple[bytes, bytes]]:
    headers = [(name.encode("ascii"), value.encode("latin1")) for name, value in response.items()]
    cookies = (cookie.output(header="").strip() for cookie in response.cookies.values())
    return headers + [(b"Set-Cookie", cookie.encode("ascii")) for cookie in cookies]


def _next_part(parts: Iterator[bytes]) -> bytes:
    """Return the next part that is not empty, or nothing at the end."""
    for part in parts:
        if part:
            return part
    return b""


def routed_application() -> RoutedHandler:
    """Set Django up and return its handler. A broken URL configuration fails here, at start."""
    django.setup(set_prefix=False)
    check_url_config(None)
    # Each request gives its connections back when it ends, so there are none when one begins, and
    # no queries are remembered but for debugging. Looking for both took 3 % of a read.
    signals.request_started.disconnect(close_old_connections)
    if not settings.DEBUG:
        signals.request_started.disconnect(reset_queries)
    return RoutedHandler(environment().rillbase_control_body_max_bytes)
