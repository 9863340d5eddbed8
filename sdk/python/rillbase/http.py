"""Calls over HTTP: credentials, timeouts and retries.

Reads may always be retried. Writes carry an idempotency key, with which a retried call takes effect
once, so they may be retried too. The standard library's client does the I/O, in threads, on
persistent connections.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import ssl
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, BinaryIO
from urllib.parse import urlsplit

from rillbase import ejson
from rillbase.backoff import RETRY
from rillbase.credentials import Credentials
from rillbase.errors import CallTimeout, ClientClosed, ConnectionLost, ServerError
from rillbase.shapes import Document

MAX_ATTEMPTS = 4
MAX_THREADS = 16
BLOCK_BYTES = 64 * 1024
UNAUTHENTICATED, FIRST_ERROR = 401, 400


@dataclass(frozen=True, slots=True)
class UploadStream:
    """A body that is read while it is sent, from its start for each attempt."""

    size: int
    open: Callable[[], BinaryIO]
    #: Called with the bytes sent so far, and the total.
    on_progress: Callable[[int, int], object] | None = None

    def with_progress(self, on_progress: Callable[[int, int], object] | None) -> UploadStream:
        return replace(self, on_progress=on_progress)


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """One call of the API."""

    method: str
    path: str
    body: str | UploadStream | None = None
    content_type: str = "application/json"
    idempotency_key: str | None = None
    if_match: str | None = None
    #: An expected media type other than JSON. The body is returned unchanged.
    accept: str | None = None
    #: Timeout of this call, including retries, instead of the client's.
    timeout_s: float | None = None

    def headers(self) -> dict[str, str]:
        named = {
            "Accept": self.accept,
            "Content-Length": str(self.body.size) if isinstance(self.body, UploadStream) else None,
            "Content-Type": None if self.body is None else self.content_type,
            "Idempotency-Key": self.idempotency_key,
            "If-Match": self.if_match,
        }
        return {name: text for name, text in named.items() if text is not None}


@dataclass(frozen=True, slots=True)
class _HttpResponse:
    status: int
    headers: Mapping[str, str]
    body: bytes


class Http:
    """Makes calls."""

    def __init__(self, url: str, credentials: Credentials, timeout_s: float) -> None:
        self._credentials = credentials
        self._timeout_s = timeout_s
        self._connections = _Connections(url, timeout_s)
        self._threads = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="rillbase-http")
        self._is_closed = False

    async def call(self, request: ApiRequest) -> Any:
        """Return the body of the response, or None if it is empty."""
        limit_s = self._timeout_s if request.timeout_s is None else request.timeout_s
        try:
            async with asyncio.timeout(limit_s):
                return await self._send_with_retries(request)
        except TimeoutError:
            raise CallTimeout(limit_s) from None

    def close(self) -> None:
        self._is_closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._connections.close()

    async def _send_with_retries(self, request: ApiRequest) -> Any:
        renewed = False
        attempt = 1
        while True:
            try:
                return await self._attempt(request)
            except (ServerError, ConnectionLost) as error:
                refused = isinstance(error, ServerError) and error.status == UNAUTHENTICATED
                if refused and self._credentials.can_renew and not renewed:
                    renewed = True
                    self._credentials.forget()
                    continue
                if not error.is_temporary or attempt >= MAX_ATTEMPTS:
                    raise
                asked_s = error.retry_after_s if isinstance(error, ServerError) else None
                await asyncio.sleep(max(asked_s or 0.0, RETRY.wait_s(attempt)))
                attempt += 1

    async def _attempt(self, request: ApiRequest) -> Any:
        headers = {**await self._credentials.headers(), **request.headers()}
        if self._is_closed:
            raise ClientClosed
        loop = asyncio.get_running_loop()
        answer = await loop.run_in_executor(
            self._threads, self._connections.exchange, request, headers
        )
        if answer.status >= FIRST_ERROR:
            raise _refusal(answer)
        if request.accept is not None:
            return answer.body
        return ejson.loads(answer.body) if answer.body else None


class _Connections:
    """Persistent connections, which later calls reuse."""

    def __init__(self, url: str, timeout_s: float) -> None:
        self._at = urlsplit(url)
        self._timeout_s = timeout_s
        self._free: list[http.client.HTTPConnection] = []
        self._lock = threading.Lock()

    def exchange(self, request: ApiRequest, headers: Mapping[str, str]) -> _HttpResponse:
        """Send a request and read its response."""
        connection = self._take(request.timeout_s or self._timeout_s)
        try:
            _send(connection, request, headers)
            answer = connection.getresponse()
            response = _HttpResponse(answer.status, dict(answer.getheaders()), answer.read())
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise ConnectionLost from error
        if answer.will_close:
            connection.close()
        else:
            with self._lock:
                self._free.append(connection)
        return response

    def close(self) -> None:
        with self._lock:
            free, self._free = self._free, []
        for connection in free:
            connection.close()

    def _take(self, timeout_s: float) -> http.client.HTTPConnection:
        with self._lock:
            connection = self._free.pop() if self._free else self._connect()
        connection.timeout = timeout_s
        if connection.sock is not None:
            connection.sock.settimeout(timeout_s)
        return connection

    def _connect(self) -> http.client.HTTPConnection:
        host, port = self._at.hostname or "", self._at.port
        if self._at.scheme == "https":
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(host, port, blocksize=BLOCK_BYTES, context=context)
        return http.client.HTTPConnection(host, port, blocksize=BLOCK_BYTES)


def _send(
    connection: http.client.HTTPConnection, request: ApiRequest, headers: Mapping[str, str]
) -> None:
    """Send a request. A server that rejects a stream may disconnect before it has read all of
    it.
    """
    if not isinstance(request.body, UploadStream):
        body = None if request.body is None else request.body.encode()
        connection.request(request.method, request.path, body, dict(headers))
        return
    with request.body.open() as file:
        reading = _ProgressReader(file, request.body)
        try:
            connection.request(request.method, request.path, reading, dict(headers))
        except (BrokenPipeError, ConnectionResetError):
            # Its response may already have arrived; otherwise, reading it fails.
            if reading.sent == 0:
                raise


class _ProgressReader:
    """A stream that reports how much has been read."""

    def __init__(self, file: BinaryIO, stream: UploadStream) -> None:
        self._file = file
        self._stream = stream
        self.sent = 0

    def read(self, size: int = -1) -> bytes:
        # A further read means that the previous part has been sent.
        if self._stream.on_progress is not None:
            self._stream.on_progress(self.sent, self._stream.size)
        block = self._file.read(size)
        self.sent += len(block)
        return block


def _refusal(answer: _HttpResponse) -> ServerError:
    problem: Document = {}
    # A proxy may respond with its own page; then only the status is known.
    with contextlib.suppress(ValueError):
        content = json.loads(answer.body)
        problem = content if isinstance(content, dict) else {}
    named = {name.lower(): text for name, text in answer.headers.items()}
    after = named.get("retry-after", "")
    return ServerError(problem, answer.status, float(after) if after.isdecimal() else None)
