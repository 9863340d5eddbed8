"""The one client for URLs that tenants choose: webhooks and key sets.

A tenant that chooses a URL could make the server call its own network. So the name is resolved
once, every address must be public, and the connection goes to one of the checked addresses; TLS and
the Host header still use the name. Redirects are not followed: they would be a second, unchecked
URL. Proxies from the environment are not used: they would resolve the name again.

Where loopback targets are allowed, a tenant could learn from failures what listens on this machine.
So `probe` reports every failure of an internal target alike and after the same time, and answers
and errors say whether the target was internal, for callers that show them.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from http.client import HTTPConnection, HTTPException, HTTPResponse, IncompleteRead
from socket import socket
from threading import BoundedSemaphore
from typing import Literal, TypeVar

from foundation.environment import environment
from foundation.outbound.addresses import is_plain_loopback, is_public, parse_address
from foundation.outbound.errors import (
    InvalidResponse,
    OutboundError,
    ResponseTooLarge,
    TargetRefused,
    TargetTimeout,
    TargetUnreachable,
    TargetUnusable,
    TlsFailed,
)
from foundation.outbound.resolver import Resolver, resolve
from foundation.outbound.targets import OutboundTarget, parse_target
from foundation.outbound.wire import Deadline, connection_over, open_socket, start_tls

DEADLINE_S = 10.0
#: The duration of a failed probe of an internal target, whatever the cause.
PROBE_S = 3.0
CONNECT_TIMEOUT_S = 3.0
MAX_BODY_BYTES = 64 * 1024
MAX_HEAD_BYTES = 32 * 1024
MAX_ADDRESSES_TRIED = 4
#: Well below the number of threads that handle requests.
CHECKS_AT_ONCE = 4
USER_AGENT = "Rillbase/1"

T = TypeVar("T")
Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]

_OWN_HEADERS = frozenset(
    {
        *("accept-encoding", "connection", "content-length", "host", "proxy-connection"),
        *("te", "trailer", "transfer-encoding", "upgrade", "user-agent"),
    }
)


@dataclass(frozen=True, slots=True)
class OutboundResponse:
    """The target's response, whatever its status. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    #: Whether the target has an address that is not public.
    is_internal: bool

    @property
    def successful(self) -> bool:
        return 200 <= self.status < 300  # noqa: PLR2004 - HTTP's class of success


@dataclass(frozen=True, slots=True)
class OutboundRequest:
    """A request as it is sent."""

    method: Method
    target: OutboundTarget
    headers: Mapping[str, str]
    body: bytes | None


class OutboundClient:
    """Thread-safe; each call opens a connection and closes it."""

    def __init__(
        self,
        *,
        allow_loopback: bool = False,
        resolver: Resolver = resolve,
        tls: ssl.SSLContext | None = None,
        deadline_s: float = DEADLINE_S,
        max_body_bytes: int = MAX_BODY_BYTES,
    ) -> None:
        self._allow_loopback = allow_loopback
        self._resolver = resolver
        self._tls = tls or ssl.create_default_context()
        self._deadline_s = deadline_s
        self._max_body_bytes = max_body_bytes
        self._checks = BoundedSemaphore(CHECKS_AT_ONCE)

    def check(self, url: str) -> None:
        """Raise what a call would raise before connecting, for a URL that is being registered. A
        client waits meanwhile, and a name server may hang on purpose, so only a few of these
        lookups run concurrently.
        """
        target = parse_target(url, allow_http=self._allow_loopback)
        if not self._checks.acquire(blocking=False):
            raise TargetTimeout("Too many host names are being resolved at the moment. Retry.")
        try:
            self._addresses(target, Deadline(self._deadline_s))
        finally:
            self._checks.release()

    def request(
        self,
        method: Method,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> OutboundResponse:
        """Make one call and return the response, or raise an `OutboundError`."""
        target = parse_target(url, allow_http=self._allow_loopback)
        call = OutboundRequest(method, target, _request_headers(target, headers or {}, body), body)
        deadline = Deadline(self._deadline_s)
        addresses = self._addresses(target, deadline)
        try:
            return self._perform(call, addresses, deadline)
        except OutboundError as error:
            error.is_internal = _is_internal(addresses)
            raise

    def probe(
        self,
        method: Method,
        url: str,
        read: Callable[[OutboundResponse], T],
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> T:
        """Call a target that has not yet shown that it expects calls, and `read` its response.

        `read` raises an `OutboundError` for an unexpected response. All failures of an internal
        target raise the same error, after the same time.
        """
        target = parse_target(url, allow_http=self._allow_loopback)
        call = OutboundRequest(method, target, _request_headers(target, headers or {}, body), body)
        deadline = Deadline(self._deadline_s)
        addresses = self._addresses(target, deadline)
        if not _is_internal(addresses):
            return read(self._perform(call, addresses, deadline))
        deadline = Deadline(min(PROBE_S, self._deadline_s))
        try:
            return read(self._perform(call, addresses, deadline))
        except OutboundError as error:
            time.sleep(max(0.0, PROBE_S - deadline.elapsed_s))
            raise TargetUnusable from error

    def _perform(
        self, call: OutboundRequest, addresses: Sequence[str], deadline: Deadline
    ) -> OutboundResponse:
        target = call.target
        sock = self._connect(target, addresses, deadline)
        connection = connection_over(sock, deadline, self._max_body_bytes + MAX_HEAD_BYTES)
        try:
            response, content = self._exchange(connection, call)
        except TimeoutError:
            raise TargetTimeout("The target did not complete its response in time.") from None
        except (OSError, IncompleteRead) as error:
            raise TargetUnreachable("The connection to the target broke.") from error
        except HTTPException as error:
            raise InvalidResponse("The target's response is not valid HTTP.") from error
        finally:
            connection.close()
            sock.close()
        answer_headers = {name.lower(): value for name, value in response.getheaders()}
        return OutboundResponse(
            response.status,
            answer_headers,
            content,
            _is_internal(addresses),
        )

    def _exchange(
        self, connection: HTTPConnection, call: OutboundRequest
    ) -> tuple[HTTPResponse, bytes]:
        connection.putrequest(
            call.method, call.target.path, skip_host=True, skip_accept_encoding=True
        )
        for name, value in call.headers.items():
            connection.putheader(name, value)
        connection.endheaders(call.body)
        response = connection.getresponse()
        return response, _read_body(response, self._max_body_bytes)

    def _addresses(self, target: OutboundTarget, deadline: Deadline) -> Sequence[str]:
        """Resolve the host and return its addresses if all of them may be called."""
        addresses = self._resolver(target.host, target.port, deadline.remaining_s())
        if not addresses:
            raise TargetUnreachable("The host name has no address.")
        for text in addresses:
            address = parse_address(text)
            loopback = address is not None and is_plain_loopback(address)
            if loopback and self._allow_loopback:
                continue
            if address is None or not is_public(address):
                raise TargetRefused("The URL's host is not on the public internet.")
            if target.scheme != "https":
                raise TargetRefused("The URL must begin with https://.")
        return addresses[:MAX_ADDRESSES_TRIED]

    def _connect(
        self, target: OutboundTarget, addresses: Sequence[str], deadline: Deadline
    ) -> socket:
        failure: Exception | None = None
        for address in addresses:
            try:
                sock = open_socket(
                    address, target.port, min(CONNECT_TIMEOUT_S, deadline.remaining_s())
                )
                break
            except OSError as error:
                failure = error
        else:
            raise TargetUnreachable("The target refused the connection.") from failure
        if target.scheme == "http":
            return sock
        try:
            return start_tls(sock, self._tls, target.host, deadline)
        except TimeoutError:
            raise TargetTimeout("The TLS handshake took too long.") from None
        except ssl.SSLCertVerificationError as error:
            raise TlsFailed(f"The certificate is not valid: {error.verify_message}.") from error
        except OSError as error:
            raise TlsFailed("The TLS connection failed.") from error


def _is_internal(addresses: Sequence[str]) -> bool:
    parsed = (parse_address(text) for text in addresses)
    return not all(address is not None and is_public(address) for address in parsed)


def _request_headers(
    target: OutboundTarget, extra: Mapping[str, str], body: bytes | None
) -> dict[str, str]:
    for name in extra:
        if name.lower() in _OWN_HEADERS:
            raise ValueError(f"header {name!r} is set by the client itself")
    headers = {
        "Host": target.authority,
        "User-Agent": USER_AGENT,
        "Accept-Encoding": "identity",
        "Connection": "close",
        **extra,
    }
    if body is not None:
        headers["Content-Length"] = str(len(body))
    return headers


def _read_body(response: HTTPResponse, max_bytes: int) -> bytes:
    encodings = response.headers.get_all("Content-Encoding", [])
    transfers = response.headers.get_all("Transfer-Encoding", [])
    if any(e.strip().lower() != "identity" for e in encodings):
        raise InvalidResponse("The response is compressed, although no compression was requested.")
    if any(t.strip().lower() != "chunked" for t in transfers):
        raise InvalidResponse("The response has a transfer encoding that was not requested.")
    body = response.read(max_bytes + 1)
    if len(body) > max_bytes:
        raise ResponseTooLarge(f"The response is larger than {max_bytes} bytes.")
    if response.length:
        raise TargetUnreachable("The response was truncated.")
    return body


@lru_cache(maxsize=1)
def outbound_client() -> OutboundClient:
    """Return this process's client, configured by the settings."""
    return OutboundClient(allow_loopback=environment().rillbase_allow_loopback_targets)
