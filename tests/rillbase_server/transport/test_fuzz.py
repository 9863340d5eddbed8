"""Seeded hostile bytes: frames are compared with the library's own parser, requests with
differently split ones.
"""

from __future__ import annotations

import itertools
import random
import zlib

import pytest
from websockets.exceptions import PayloadTooBig
from websockets.extensions.permessage_deflate import PerMessageDeflate
from websockets.frames import Frame
from websockets.streams import StreamReader

from rillbase_server.transport.transport_limits import TransportLimits
from rillbase_server.transport.websocket_frames import (
    ControlFrame,
    FrameReader,
    FrameStop,
    ReceivedMessage,
    WebSocketViolation,
)
from tests.rillbase_server.transport.raw import ends, frame, get, send_all, upgrade
from tests.rillbase_server.transport.serving import Echo, ServerUnderTest, serving
from tests.waiting import wait_until

LIMIT = 5000
FEW, MANY = range(150), range(150, 30_000)
Events = list[object]


def deflate(*, keeps_context: bool) -> PerMessageDeflate:
    return PerMessageDeflate(not keeps_context, True, 12, 12)


class Sender:
    """Generates the frames of one client, most of them valid."""

    def __init__(self, rng: random.Random, *, keeps_context: bool) -> None:
        self._rng = rng
        self._keeps_context = keeps_context
        self._encoder = zlib.compressobj(6, zlib.DEFLATED, -12)

    def stream(self) -> bytes:
        return b"".join(self._message() for _ in range(self._rng.randrange(1, 8)))

    def _message(self) -> bytes:
        rng = self._rng
        if rng.random() < 0.2:
            return self._frame(rng.randbytes(rng.randrange(140)), rng.choice((9, 10)))
        data = self._payload()
        opcode = rng.choice((1, 2))
        is_deflated = rng.random() < 0.6
        if is_deflated:
            data = self._deflated(data)
        parts = self._cut(data)
        frames = []
        for number, part in enumerate(parts):
            last = number == len(parts) - 1
            frames.append(
                self._frame(
                    part,
                    opcode if number == 0 else 0,
                    fin=last,
                    deflated=is_deflated and number == 0,
                )
            )
            if not last and rng.random() < 0.2:
                frames.append(self._frame(b"!", 9))
        return b"".join(frames)

    def _payload(self) -> bytes:
        rng = self._rng
        size = rng.choice((0, 1, 125, 126, LIMIT - 1, LIMIT, LIMIT + 1, rng.randrange(3 * LIMIT)))
        kind = rng.random()
        if kind < 0.5:
            return b"a" * size
        return ("é" * size).encode()[:size] if kind < 0.7 else rng.randbytes(size)

    def _deflated(self, data: bytes) -> bytes:
        if not self._keeps_context:
            self._encoder = zlib.compressobj(6, zlib.DEFLATED, -12)
        return (self._encoder.compress(data) + self._encoder.flush(zlib.Z_SYNC_FLUSH))[:-4]

    def _cut(self, data: bytes) -> list[bytes]:
        cuts = sorted(self._rng.randrange(len(data) + 1) for _ in range(self._rng.randrange(4)))
        edges = [0, *cuts, len(data)]
        return [data[a:b] for a, b in itertools.pairwise(edges)]

    def _frame(self, data: bytes, opcode: int, **flags: bool) -> bytes:
        return frame(data, opcode, mask=self._rng.randbytes(4), **flags)

    def spoilt(self, data: bytes) -> bytes:
        spoilt = bytearray(data)
        for _ in range(self._rng.randrange(1, 4)):
            if spoilt:
                spoilt[self._rng.randrange(len(spoilt))] = self._rng.randrange(256)
        return bytes(spoilt)


class Oracle:
    """The library's parser, and messages of what it reads."""

    def __init__(self, data: bytes, extension: PerMessageDeflate) -> None:
        self._reader = StreamReader()
        self._reader.feed_data(data)
        self._extension = extension
        self._message: bytearray | None = None
        self._is_text = False
        self._sent_bytes = 0
        self.events: Events = []

    @property
    def is_deaf(self) -> bool:
        """Whether it ignores what is compressed, since a last block came."""
        decoder = getattr(self._extension, "decoder", None)
        return decoder is not None and decoder.eof

    # As an extension of the library's parser

    def decode(self, read: Frame, *, max_size: int | None = None) -> Frame:
        """Inflate a frame to what is left of the limit; to the library no room is no limit.

        The library bounds what is sent of one frame, and we of all fragments of a message.
        """
        if read.opcode < 8:
            self._sent_bytes = len(read.data) + (self._sent_bytes if read.opcode == 0 else 0)
            if self._sent_bytes > LIMIT:
                raise PayloadTooBig(self._sent_bytes, LIMIT)
        room = LIMIT - len(self._message or b"")
        return self._extension.decode(read, max_size=max(room, 1))

    def run(self) -> bool:
        """Read until the library rejects something; return whether it did."""
        while True:
            parsing = Frame.parse(
                self._reader.read_exact,
                mask=True,
                max_size=LIMIT,
                extensions=[self],  # type: ignore[list-item]  # whatever has `decode`
            )
            try:
                next(parsing)
            except StopIteration as done:
                if not self._take(done.value):
                    return True
            except Exception:  # noqa: BLE001 -- whatever it refuses by
                return True
            else:
                return False

    def _take(self, read: Frame) -> bool:
        if read.opcode >= 8:
            self.events.append(ControlFrame(read.opcode, bytes(read.data)))
            return True
        if (read.opcode == 0) != (self._message is not None):
            return False
        if self._message is None:
            self._message, self._is_text = bytearray(), read.opcode == 1
        self._message += read.data
        if len(self._message) > LIMIT:
            return False
        return not read.fin or self._end()

    def _end(self) -> bool:
        message, self._message = bytes(self._message or b""), None
        try:
            if self._is_text:
                message.decode()
        except UnicodeDecodeError:
            return False
        self.events.append(ReceivedMessage(message, self._is_text))
        return True


def by_us(data: bytes, extension: PerMessageDeflate, rng: random.Random) -> tuple[Events, str]:
    """Return what our reader reads, fed in pieces and granted memory in steps, and why it rejects
    the rest.
    """
    reader = FrameReader(extension, limit=LIMIT)
    reader.granted_bytes = 100
    events: Events = []
    while True:
        try:
            event = reader.step()
        except WebSocketViolation as violation:
            return events, str(violation)
        if event is FrameStop.NEEDS_INPUT:
            if not data:
                return events, ""
            size = rng.randrange(1, len(data) + 1)
            reader.feed(data[:size])
            data = data[size:]
        elif event is FrameStop.NEEDS_MEMORY:
            reader.granted_bytes += 700
        elif event is FrameStop.OVER_LIMIT:
            return events, "over the limit"
        elif event is not FrameStop.PROGRESS:
            events.append(event)
        assert len(reader._message) <= min(LIMIT, reader.granted_bytes) + 1


def compare_frames(seed: int) -> None:
    rng = random.Random(seed)
    keeps_context = rng.random() < 0.5
    sender = Sender(rng, keeps_context=keeps_context)
    data = sender.stream()
    is_spoilt = rng.random() < 0.4
    if is_spoilt:
        data = sender.spoilt(data)
    oracle = Oracle(data, deflate(keeps_context=keeps_context))
    they_refuse, theirs = oracle.run(), oracle.events
    ours, we_refuse = by_us(data, deflate(keeps_context=keeps_context), rng)
    # Both reject the same input, but at different points of it.
    common = min(len(theirs), len(ours))
    assert oracle.is_deaf or ours[:common] == theirs[:common], seed
    if not is_spoilt:
        assert bool(we_refuse) == they_refuse, seed
        assert they_refuse or ours == theirs, seed


def test_our_frame_reader_agrees_with_the_library() -> None:
    for seed in FEW:
        compare_frames(seed)


@pytest.mark.long
def test_our_frame_reader_agrees_with_the_library_at_length() -> None:
    for seed in MANY:
        compare_frames(seed)


def requests(rng: random.Random) -> bytes:
    """Return pipelined requests, some of them invalid."""
    parts = []
    for _ in range(rng.randrange(1, 6)):
        path = f"/{rng.randrange(1000)}"
        kind = rng.randrange(5)
        if kind == 0:
            parts.append(get(path, *(f"X{i}: {i}" for i in range(rng.randrange(40)))))
        elif kind == 1:
            body = rng.randbytes(rng.choice((0, 1, 100, 20_000)))
            parts.append(
                f"POST {path} HTTP/1.1\r\nHost: l\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            )
            parts.append(body)
        elif kind == 2:
            parts.append(
                f"POST {path} HTTP/1.1\r\nHost: l\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
            )
            for _ in range(rng.randrange(10)):
                part = rng.randbytes(rng.randrange(1, 300))
                parts.append(b"%x;e=%d\r\n%b\r\n" % (len(part), rng.randrange(99), part))
            parts.append(b"0\r\nT: x\r\n\r\n")
        elif kind == 3:
            parts.append(upgrade(path))
            parts.append(frame(rng.randbytes(rng.randrange(300)), mask=rng.randbytes(4)))
        else:
            parts.append(b"\r\n" * rng.randrange(3))
    data = bytearray(b"".join(parts))
    for _ in range(rng.choice((0, 0, 0, 1, 3)) if data else 0):
        data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data)


def converse(served: ServerUnderTest, data: bytes, cuts: list[int]) -> bytes:
    """Send bytes in these pieces, and return all that comes back until the end."""
    with served.connect() as client:
        edges = [0, *cuts, len(data)]
        for begin, end in itertools.pairwise(edges):
            if not send_all(client, data[begin:end]):
                break
        received = bytearray()
        try:
            while piece := client.recv(65536):
                received += piece
        except ConnectionError:
            pass
        return bytes(received)


def bombard(seeds: range) -> None:
    """Check that requests have the same meaning however they are split, and that the server
    survives all of them.
    """
    echo = Echo()
    bounds = TransportLimits(header_timeout_s=0.3, transfer_window_s=0.3, min_bytes_per_s=1000)
    with serving(echo, bounds) as served:
        for seed in seeds:
            rng = random.Random(seed)
            data = requests(rng)
            if not data:
                continue
            seen = []
            cuts = sorted(rng.randrange(len(data)) for _ in range(rng.randrange(1, 20)))
            for pieces in ([], cuts):
                echo.requests.clear()
                converse(served, data + get("/end", "Connection: close"), pieces)
                seen.append(list(echo.requests))
            assert seen[0] == seen[1], seed
        wait_until(lambda: served.open_connections == 0, what="all connections to be forgotten")
        assert served.table.memory.used_bytes == 0
        with served.connect() as client:
            client.sendall(get("/alive", "Connection: close"))
            assert ends(client)
        assert echo.requests[-1] == ("GET", "/alive", 0)


def test_requests_are_parsed_alike_however_they_are_split() -> None:
    bombard(range(25))


@pytest.mark.long
def test_requests_are_parsed_alike_however_they_are_split_at_length() -> None:
    bombard(range(25, 2000))
