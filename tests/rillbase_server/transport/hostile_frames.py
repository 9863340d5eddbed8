"""Conversations of hostile WebSocket clients: offers of compression, and frames that break rules.

The generator knows which rule it has broken: it records the expected close code, or that none is
expected.
"""

from __future__ import annotations

import itertools
import json
import random
import zlib
from dataclasses import dataclass, field

from rillbase_server.transport.lingering_close import LINGER_BYTES
from rillbase_server.transport.websocket_frames import SMALL_FRAMES_AT_ONCE
from tests.rillbase_server.transport.raw import frame

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
PROTOCOL_ERROR, INVALID_DATA, POLICY, TOO_BIG = 1002, 1007, 1008, 1009
GREETING_LIMIT, MESSAGE_LIMIT = 8 * 1024, 32 * 1024 * 1024
SENTINEL = b"still there?"
_PARAMETERS = (
    "server_no_context_takeover",
    "client_no_context_takeover",
    "server_max_window_bits",
    "client_max_window_bits",
)
_FLAGS = frozenset(_PARAMETERS[:2])
_VALUES = ("7", "8", "9", "10", "12", "15", "16", "08", "+9", "-9", "x", "", "9.0", "1" * 400, "٩")
_EMPTY_BLOCK = b"\x00\x00\x00\xff\xff"


@dataclass(frozen=True)
class Compression:
    """What was negotiated, as the client sees it."""

    client_bits: int = 15
    server_bits: int = 15
    client_keeps_context: bool = True
    server_keeps_context: bool = True


def offer(rng: random.Random) -> str:
    """Return the value of a `Sec-WebSocket-Extensions` header."""
    count = rng.choice((1, 1, 1, 2, 3, 200))
    return ", ".join(_one_offer(rng) for _ in range(count))


def _one_offer(rng: random.Random) -> str:
    if rng.random() < 0.1:
        return rng.choice(("x-webkit-deflate-frame", "permessage-deflate2", "a; b=c", ";", "=", ""))
    names = rng.sample(_PARAMETERS, rng.randrange(5))
    if rng.random() < 0.1:
        names.append(rng.choice((*_PARAMETERS, "unknown")))
    return "; ".join(["permessage-deflate", *(_parameter(rng, name) for name in names)])


def _parameter(rng: random.Random, name: str) -> str:
    is_strange = rng.random() < 0.15
    if name in _FLAGS:
        return f"{name}={rng.choice(_VALUES)}" if is_strange else name
    if is_strange:
        return f"{name}={rng.choice(_VALUES)}"
    value = rng.choice(range(8, 16))
    return rng.choice((f"{name}={value}", f'{name}="{value}"'))


def accepted(offered: str, answered: str | None) -> Compression | None:
    """Return what the server accepted; fails unless some offer allows that (RFC 7692, 7.1)."""
    if answered is None:
        return None
    name, *parts = [part.strip() for part in answered.split(";")]
    assert name == "permessage-deflate", answered
    chosen = _parameters(parts)
    assert len(chosen) == len(parts), answered
    assert chosen.keys() <= set(_PARAMETERS), answered
    assert any(_allows(protocol, chosen) for protocol in offered.split(",")), (offered, answered)
    return Compression(
        int(chosen.get("client_max_window_bits", "15")),
        int(chosen.get("server_max_window_bits", "15")),
        "client_no_context_takeover" not in chosen,
        "server_no_context_takeover" not in chosen,
    )


def _parameters(parts: list[str]) -> dict[str, str]:
    divided = [part.partition("=") for part in parts]
    return {name: value.strip('"') for name, _, value in divided}


def _allows(offered: str, chosen: dict[str, str]) -> bool:
    name, *parts = [part.strip() for part in offered.split(";")]
    requested = _parameters(parts)
    if name != "permessage-deflate" or len(requested) != len(parts):
        return False
    if "server_no_context_takeover" in requested and "server_no_context_takeover" not in chosen:
        return False
    for key in ("server_max_window_bits", "client_max_window_bits"):
        most = requested.get(key) or "15"
        if not most.isascii() or not most.isdigit():
            return False
        if not 8 <= int(chosen.get(key, "15")) <= int(most):
            return False
    return "client_max_window_bits" in requested or "client_max_window_bits" not in chosen


@dataclass
class Conversation:
    """The bytes of a client, and the response that it must receive."""

    data: bytearray = field(default_factory=bytearray)
    #: The code with which the server has to close; None while no rule is broken.
    code: int | None = None
    #: Whether the application has something to close the connection for.
    is_heard: bool = False
    #: Whether the client has closed the connection itself and goes on sending.
    has_closed: bool = False

    @property
    def may_be_reset(self) -> bool:
        """Return whether the close frame may be lost because the client does not read."""
        return self.has_closed or len(self.data) > LINGER_BYTES


class Client:
    """Generates conversations."""

    def __init__(
        self, rng: random.Random, compression: Compression | None, *, limit: int = GREETING_LIMIT
    ) -> None:
        self._rng = rng
        self._compression = compression
        self._limit = limit
        self._encoder: zlib._Compress | None = None
        self.account = Conversation()

    def send(self, text: bytes) -> bytes:
        """Return a message by itself."""
        return frame(text, TEXT, mask=self._rng.randbytes(4))

    def converse(self) -> Conversation:
        """Return a conversation: it ends with a ping that is answered if nothing was broken."""
        kinds = (self._message, self._message, self._control, self._flood, self._break)
        for _ in range(self._rng.randrange(1, 6)):
            self._rng.choice(kinds)()
        self._add(SENTINEL, PING)
        return self.account

    def _add(
        self, payload: bytes, opcode: int, *, fin: bool = True, deflated: bool = False
    ) -> None:
        mask = self._rng.randbytes(4) if len(payload) < 200 else b""
        self.account.data += frame(payload, opcode, fin=fin, deflated=deflated, mask=mask)

    def _refused(self, code: int) -> None:
        """Record the expected close code. Only the first broken rule counts."""
        if self.account.code is None:
            self.account.code = code

    def _message(self) -> None:
        rng = self._rng
        payload, is_text = self._payload()
        is_deflated = self._compression is not None and rng.random() < 0.7
        sent = self._deflated(payload) if is_deflated else payload
        self._fragments(sent, TEXT if is_text else BINARY, is_deflated=is_deflated)
        if len(payload) > self._limit or len(sent) > self._limit:
            self._refused(TOO_BIG)
        elif is_text and not _is_utf8(payload):
            self._refused(INVALID_DATA)
        elif self.account.code is None:
            self.account.is_heard = True

    def _payload(self) -> tuple[bytes, bool]:
        rng = self._rng
        near = rng.choice((0, 1, 125, 126, 4000, GREETING_LIMIT))
        kind = rng.randrange(6)
        if kind == 0:
            return json.dumps({"type": "ping", "id": "x" * rng.randrange(40)}).encode(), True
        if kind == 1:
            return b"\xff" * (near + 1), True
        if kind == 2:
            return rng.randbytes(near), False
        if kind == 3 and rng.random() < 0.3:
            return b"a" * (self._limit + 1), True
        return ("é" * near)[: near // 2].encode() or b"{", True

    def _deflated(self, payload: bytes) -> bytes:
        compression = self._compression
        assert compression is not None
        if self._encoder is None or not compression.client_keeps_context:
            # zlib cannot make a window of 256 bytes; runs alone never look back that far.
            strategy = zlib.Z_RLE if compression.client_bits < 9 else zlib.Z_DEFAULT_STRATEGY
            bits = max(compression.client_bits, 9)
            self._encoder = zlib.compressobj(
                self._rng.choice((0, 1, 9)), zlib.DEFLATED, -bits, 8, strategy
            )
        created = self._encoder.compress(payload) + self._encoder.flush(zlib.Z_SYNC_FLUSH)
        return created[:-4]

    def _fragments(self, sent: bytes, opcode: int, *, is_deflated: bool) -> None:
        rng = self._rng
        cuts = sorted(rng.randrange(len(sent) + 1) for _ in range(rng.choice((0, 0, 1, 3, 20))))
        edges = [0, *cuts, len(sent)]
        for number, (begin, end) in enumerate(itertools.pairwise(edges)):
            is_first, is_last = number == 0, end == len(sent) and number == len(edges) - 2
            self._add(
                sent[begin:end],
                opcode if is_first else 0,
                fin=is_last,
                deflated=is_deflated and is_first,
            )
            if not is_last and rng.random() < 0.3:
                self._control()

    def _control(self) -> None:
        self._add(self._rng.randbytes(self._rng.randrange(126)), self._rng.choice((PING, PONG)))

    def _flood(self) -> None:
        """Send control frames, sometimes more than a connection may have at once."""
        count = self._rng.choice((1, 20, 4 * SMALL_FRAMES_AT_ONCE))
        for _ in range(count):
            self._add(b"", self._rng.choice((PING, PONG)))
        if count > SMALL_FRAMES_AT_ONCE:
            self._refused(POLICY)

    def _break(self) -> None:
        """Break one rule."""
        rng = self._rng
        if rng.random() < 0.5:
            return
        broken = [self._bad_close, self._bad_head, self._bad_fragment, self._good_close]
        if self._compression is not None:
            broken += [self._bad_deflate, self._empty_blocks]
        rng.choice(broken)()

    def _good_close(self) -> None:
        code = self._rng.choice((1000, 1001, 1003, 1011, 3000, 4999))
        self._add(code.to_bytes(2, "big") + "bye é".encode(), CLOSE)
        self.account.has_closed = self.account.code is None
        self._refused(code)

    def _bad_close(self) -> None:
        rng = self._rng
        if rng.random() < 0.3:
            self._add(b"\x03\xe8" + b"\xff\xfe", CLOSE)
            self._refused(INVALID_DATA)
            return
        code = rng.choice((0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65535))
        self._add(rng.choice((b"\x03", code.to_bytes(2, "big"))), CLOSE)
        self._refused(PROTOCOL_ERROR)

    def _bad_head(self) -> None:
        rng = self._rng
        opcode = rng.choice((3, 4, 7, 11, 15))
        choices = [
            frame(b"x", opcode),
            frame(b"x" * 126, PING),
            frame(b"x", PING, fin=False),
            frame(b"x", PONG, deflated=True),
            b"\x81\x01x",
            b"\xa1\x80\0\0\0\0",
            b"\x91\x80\0\0\0\0",
            frame(b"x", 0),
        ]
        if self._compression is None:
            choices.append(frame(b"x", deflated=True))
        self.account.data += rng.choice(choices)
        self._refused(PROTOCOL_ERROR)

    def _bad_fragment(self) -> None:
        self._add(b"x", TEXT, fin=False)
        if self._rng.random() < 0.5:
            self._add(b"x", TEXT)
            self._refused(PROTOCOL_ERROR)
            return
        self.account.data += b"\x80\xff" + b"\xff" * 12
        self._refused(TOO_BIG)

    def _bad_deflate(self) -> None:
        """A block of no type, bytes behind a last block, or a message that is cut within a block.

        As in the reference library, a truncated message is accepted as far as it was decompressed.
        """
        broken = self._rng.choice((b"\x06", b"\x07", b"\x03\x00junk", b"\x00\xff\xff\x00\x00cut"))
        self._add(broken, BINARY, deflated=True)
        if broken.endswith(b"cut"):
            self.account.is_heard = self.account.is_heard or self.account.code is None
        else:
            self._refused(PROTOCOL_ERROR)

    def _empty_blocks(self) -> None:
        """More compressed bytes than a message may have, which decompress to nothing."""
        blocks = _EMPTY_BLOCK * 1_600
        for number in range(self._limit // len(blocks) + 2):
            self._add(blocks, 0 if number else BINARY, fin=False, deflated=number == 0)
        self._refused(TOO_BIG)


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
