"""Checks the messages of a source's server before libpq reads them.

libpq trusts a server: it allocates as many bytes as a message announces, keeps every row, parameter
and notification, and hashes a password as often as the server requests, without returning to the
event loop. A source's server belongs to a tenant, so the stream is checked message by message.
Until the login is complete, entire messages are buffered, since two of them are inspected.
Afterwards, only headers are parsed, and bytes are forwarded as they arrive.
"""

from __future__ import annotations

import re
from struct import Struct

from sources.conditions import SourceUnsuitable

#: Limits on one message during the login, and on all of them together.
LOGIN_MESSAGE_BYTES = 64 * 1024
LOGIN_BYTES = 256 * 1024
#: PostgreSQL's default is 4,096 rounds. This limit takes a tenth of a second.
SCRAM_ITERATIONS = 100_000
#: Limit on the data of one query, except copy data: libpq keeps it in memory.
ANSWER_BYTES = 2 * 1024 * 1024
#: Maximum size of a row of a copy, or of a change. Documents have up to 16 MiB. The text of a
#: `bytea` is twice as large, and updates contain the row twice if the replica identity is FULL.
ROW_BYTES = 64 * 1024 * 1024

_HEADER = Struct("!cI")
_INT4 = Struct("!I")
_LENGTH_BYTES = 4
_SASL, _SASL_CONTINUE = 10, 11
_LOGINS = frozenset({0, 3, 5, _SASL, _SASL_CONTINUE, 12})
_ITERATIONS = re.compile(rb"(?:^|,)i=([0-9]{1,10})(?:,|$)")


class OversizedMessage(SourceUnsuitable):
    """The server sent more than this process may buffer for a source."""

    def __init__(self, detail: str) -> None:
        super().__init__("message_too_large", detail, "/connection")


class ProtocolViolation(SourceUnsuitable):
    """The server violates the protocol, or asks for something unsupported."""

    def __init__(self, detail: str) -> None:
        super().__init__("protocol_violation", detail, "/connection")


class ServerStream:
    """The bytes of one server connection."""

    def __init__(self, *, row_bytes: int = ROW_BYTES) -> None:
        self._row_bytes = row_bytes
        self._is_logged_in = False
        self._login_bytes = 0
        #: Bytes of the current query, which libpq may keep in memory.
        self._answer_bytes = 0
        #: Bytes of the current message that have not arrived yet.
        self._remaining = 0
        self._pending = b""

    def accept(self, data: bytes) -> bytes:
        """Return the bytes to pass on, or raise `SourceUnsuitable`."""
        if not self._is_logged_in:
            return self._accept_login(data)
        self._check_headers(data)
        return data

    def _accept_login(self, data: bytes) -> bytes:
        self._pending += data
        messages = b"".join(iter(self._login_message, b""))
        if self._is_logged_in:
            rest, self._pending = self._pending, b""
            self._check_headers(rest)
            messages += rest
        return messages

    def _login_message(self) -> bytes:
        """Return the next message; empty if it is incomplete, or if there is none."""
        if self._is_logged_in or len(self._pending) < _HEADER.size:
            return b""
        kind, length = _HEADER.unpack_from(self._pending)
        if length < _LENGTH_BYTES or length > LOGIN_MESSAGE_BYTES:
            raise ProtocolViolation(
                "During the login, the server sent messages that PostgreSQL does not send."
            )
        if len(self._pending) < 1 + length:
            return b""
        message, self._pending = self._pending[: 1 + length], self._pending[1 + length :]
        self._login_bytes += len(message)
        if self._login_bytes > LOGIN_BYTES:
            raise OversizedMessage(
                f"The server sent more than {LOGIN_BYTES} bytes during the login."
            )
        if kind == b"R":
            return _checked_authentication(message)
        self._is_logged_in = kind == b"Z"
        return message

    def _check_headers(self, data: bytes) -> None:
        at, size = 0, len(data)
        while at < size:
            if self._remaining:
                step = min(self._remaining, size - at)
                self._remaining -= step
                at += step
                continue
            header = self._pending + data[at : at + _HEADER.size - len(self._pending)]
            at += len(header) - len(self._pending)
            if len(header) < _HEADER.size:
                self._pending = header
                return
            self._pending = b""
            self._begin(*_HEADER.unpack(header))

    def _begin(self, kind: bytes, length: int) -> None:
        if length < _LENGTH_BYTES:
            raise ProtocolViolation("The server sent a message with an invalid length.")
        self._remaining = length - _LENGTH_BYTES
        if kind == b"d":
            if length > self._row_bytes:
                raise OversizedMessage(
                    f"The server sent a row or a row change of more than {self._row_bytes} bytes."
                )
            return
        self._answer_bytes = 0 if kind == b"Z" else self._answer_bytes + 1 + length
        if self._answer_bytes > ANSWER_BYTES:
            raise OversizedMessage(f"The server responded with more than {ANSWER_BYTES} bytes.")


def _checked_authentication(message: bytes) -> bytes:
    body = message[_HEADER.size :]
    if len(body) < _INT4.size:
        raise ProtocolViolation("The server sent an incomplete password request.")
    (method,) = _INT4.unpack_from(body)
    if method not in _LOGINS:
        raise ProtocolViolation("The server requires a login method other than a password.")
    if method == _SASL:
        # Channel binding requires a TLS connection that ends in libpq.
        mechanisms = body[_INT4.size :].split(b"\0")
        names = [name for name in mechanisms if name and not name.endswith(b"-PLUS")]
        content = _INT4.pack(_SASL) + b"".join(name + b"\0" for name in names) + b"\0"
        return _HEADER.pack(b"R", _LENGTH_BYTES + len(content)) + content
    if method == _SASL_CONTINUE:
        match = _ITERATIONS.search(body, _INT4.size)
        if match is None or int(match[1]) > SCRAM_ITERATIONS:
            raise ProtocolViolation(
                f"The server requires a password hash with more than {SCRAM_ITERATIONS} "
                "iterations (scram_iterations)."
            )
    return message
