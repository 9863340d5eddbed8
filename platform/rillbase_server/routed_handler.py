"""Runs Django under ASGI with a bounded pool of threads.

Django's own ASGI handler creates a thread for each request, switches to it several times, and
creates new database wrappers in it, which costs more than the rest of a read. Views here are
synchronous, so a request switches once to a thread of a small pool and runs there from the first
signal to the last. The pool also limits the concurrent requests of a process; others wait in its
queue. A body is read before its view can authenticate the caller, so it is limited to the size that
the control plane accepts, a small fraction of the data plane's limit. Handlers of large bodies
precede this one and check credentials first (`data_plane.calls`). The matched route is stored in
the scope's state for the edge: metrics, log lines and spans are labelled with it, never with the
raw path.
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

_HANDED_BACK = (
    request_context.tenant_id,
    request_context.principal,
    request_context.error_code,
)


class RoutedHandler(BaseHandler):
    """Handles HTTP with Django's views. Rejects WebSockets, which Django does not support."""

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
            state = request.scope["state"]
            state["route"], state["parameters"] = str(match.route), match.kwargs
        return match

    def _respond(self, scope: Scope, body: IO[bytes]) -> HttpResponseBase:
        """Run a request in this thread, then return its database connections."""
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
    """Return the body, or None if the client disconnected. Raise if it is too large."""
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
        # The rest is not read, so the connection must be closed.
        raise BodyTooLarge(
            f"The body may have at most {max_bytes} bytes.", headers={"Connection": "close"}
        )


def _announced(scope: Scope) -> int:
    """Return the `Content-Length`, or 0."""
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            return int(value)
    return 0


def _headers(response: HttpResponseBase) -> list[tuple[bytes, bytes]]:
    headers = [(name.encode("ascii"), value.encode("latin1")) for name, value in response.items()]
    cookies = (cookie.output(header="").strip() for cookie in response.cookies.values())
    return headers + [(b"Set-Cookie", cookie.encode("ascii")) for cookie in cookies]


def _next_part(parts: Iterator[bytes]) -> bytes:
    """Return the next non-empty part; empty at the end."""
    for part in parts:
        if part:
            return part
    return b""


def routed_application() -> RoutedHandler:
    """Set up Django and return its handler. Fails at startup if the URL configuration is broken."""
    django.setup(set_prefix=False)
    check_url_config(None)
    # Each request returns its connections at its end, so there are none at the beginning, and
    # queries are recorded only for debugging. Checking for both took 3 % of a read.
    signals.request_started.disconnect(close_old_connections)
    if not settings.DEBUG:
        signals.request_started.disconnect(reset_queries)
    return RoutedHandler(environment().rillbase_control_body_max_bytes)
