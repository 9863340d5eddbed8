"""Reads the frames that a WebSocket client sends, a bounded step at a time.

The reader buffers the bytes of one read and the incoming message, which is inflated as it arrives.
It stops when the message would exceed its limit or its granted memory, and after each message, and
resumes there in the next step without losing data.
"""

from __future__ import annotations

import codecs
import zlib
from dataclasses import dataclass
from enum import Enum

from websockets.extensions.permessage_deflate import PerMessageDeflate
from websockets.frames import CloseCode, Opcode

try:
    from websockets.speedups import apply_mask
except ImportError:  # if the library was built without a compiler
    from websockets.utils import apply_mask

#: Maximum bytes that one step consumes, and that it adds to a message.
STEP_BYTES = 64 * 1024
MAX_CONTROL_BYTES = 125
#: Control frames and fragments smaller than this have a high overhead. They are limited per
#: connection, in bursts and per second.
SMALL_FRAGMENT_BYTES = 64
SMALL_FRAMES_AT_ONCE, SMALL_FRAMES_PER_S = 256, 64
_SHORT_HEAD_BYTES = 2
#: The bytes that a sender omits at the end of each compressed message (RFC 7692, 7.2.1).
_EMPTY_BLOCK = b"\x00\x00\xff\xff"
_CONTROL = frozenset({Opcode.CLOSE, Opcode.PING, Opcode.PONG})


class WebSocketViolation(Exception):
    """The client violated the protocol; the connection is closed with this code."""

    def __init__(self, code: CloseCode, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class FrameStop(Enum):
    """Why a step yielded nothing for the application."""

    #: It processed a part of the message.
    PROGRESS = "progress"
    NEEDS_INPUT = "needs_input"
    #: The message exceeds the limit.
    OVER_LIMIT = "over_limit"
    #: The message needs more memory than was granted.
    NEEDS_MEMORY = "needs_memory"


@dataclass(frozen=True, slots=True)
class ControlFrame:
    opcode: Opcode
    data: bytes


@dataclass(frozen=True, slots=True)
class ReceivedMessage:
    data: bytes
    is_text: bool


@dataclass(slots=True)
class _Frame:
    opcode: Opcode
    is_last: bool
    mask: bytes
    remaining: int
    consumed: int = 0


class FrameReader:
    """The receiving side of one connection, without its socket."""

    def __init__(self, deflate: PerMessageDeflate | None, *, limit: int) -> None:
        #: Maximum bytes of a message, and the bytes of granted memory. Both may be raised.
        self.limit = limit
        self.granted_bytes = limit
        self._is_discarding = False
        self._inflater = None if deflate is None else _Inflater(deflate)
        self._input = b""
        self._at = 0
        self._frame: _Frame | None = None
        self._message = bytearray()
        #: Bytes of the message as sent, up to the end of the current frame. Compressed bytes count,
        #: since they may inflate to nothing.
        self._sent_bytes = 0
        self._small_frames = 0
        self._is_text = False
        self._is_open = False
        self._is_compressed = False

    def discard(self) -> None:
        """Discard the incoming message and all later ones. Control frames are still read."""
        self._is_discarding = True
        self._message = bytearray()

    def refill_allowances(self) -> None:
        """Allow more control frames and small fragments."""
        self._small_frames = max(self._small_frames - SMALL_FRAMES_PER_S, 0)

    @property
    def is_within_message(self) -> bool:
        """Whether a frame or message is incomplete."""
        return self._is_open or self._frame is not None or self._at < len(self._input)

    def feed(self, data: bytes) -> None:
        """Add what was read."""
        self._input = self._input[self._at :] + data if self._at < len(self._input) else data
        self._at = 0

    def step(self) -> FrameStop | ControlFrame | ReceivedMessage:
        """Process some of the bytes that were fed, or raise `WebSocketViolation`."""
        if self._frame is None:
            self._frame = self._read_head()
            if self._frame is None:
                return FrameStop.NEEDS_INPUT
        frame = self._frame
        if frame.opcode in _CONTROL:
            return self._read_control(frame)
        if self._is_discarding:
            return self._discard(frame)
        return self._read_data(frame)

    def _available(self) -> int:
        return len(self._input) - self._at

    def _read_head(self) -> _Frame | None:
        data, at = self._input, self._at
        if len(data) < at + _SHORT_HEAD_BYTES:
            return None
        first, second = data[at], data[at + 1]
        length, begin = second & 0x7F, at + 2
        size = {126: 2, 127: 8}.get(length, 0)
        end = begin + size + 4
        if not second & 0x80:
            raise WebSocketViolation(CloseCode.PROTOCOL_ERROR, "incorrect masking")
        if len(data) < end:
            return None
        if size:
            length = int.from_bytes(data[begin : begin + size], "big")
        opcode = self._check_head(first, length)
        self._at = end
        return _Frame(opcode, bool(first & 0x80), data[end - 4 : end], length)

    def _check_head(self, first: int, length: int) -> Opcode:
        try:
            opcode = Opcode(first & 0x0F)
        except ValueError:
            raise WebSocketViolation(CloseCode.PROTOCOL_ERROR, "invalid opcode") from None
        is_compressed = bool(first & 0x40)
        if first & 0x30 or (is_compressed and self._inflater is None):
            raise WebSocketViolation(CloseCode.PROTOCOL_ERROR, "reserved bits must be 0")
        if opcode in _CONTROL:
            self._check_control(first, length)
        elif opcode is Opcode.CONT:
            if not self._is_open:
                raise WebSocketViolation(CloseCode.PROTOCOL_ERROR, "unexpected continuation frame")
            if is_compressed:
                raise WebSocketViolation(CloseCode.PROTOCOL_ERROR, "reserved bits must be 0")
        else:
            if self._is_open:
                raise WebSocketViolation(CloseCode.PROTOCOL_ERROR, "expected a continuation frame")
            self._is_open, self._is_text = True, opcode is Opcode.TEXT
            self._sent_bytes = 0
            self._is_compressed = is_compressed
            if self._inflater is not None and is_compressed:
                self._inflater.begin()
        if opcode not in _CONTROL:
            self._sent_bytes += length
        self._count_small(opcode, first, length)
        return opcode

    def _count_small(self, opcode: Opcode, first: int, length: int) -> None:
        is_fragment = not first & 0x80 and length < SMALL_FRAGMENT_BYTES
        if opcode in _CONTROL or is_fragment:
            self._small_frames += 1
        if self._small_frames > SMALL_FRAMES_AT_ONCE:
            raise WebSocketViolation(
                CloseCode.POLICY_VIOLATION, "too many control frames or fragments"
            )

    def _check_control(self, first: int, length: int) -> None:
        if first & 0x40:
            raise WebSocketViolation(CloseCode.PROTOCOL_ERROR, "reserved bits must be 0")
        if length > MAX_CONTROL_BYTES:
            raise WebSocketViolation(CloseCode.PROTOCOL_ERROR, "control frame too long")
        if not first & 0x80:
            raise WebSocketViolation(CloseCode.PROTOCOL_ERROR, "fragmented control frame")

    def _read_control(self, frame: _Frame) -> FrameStop | ControlFrame:
        if self._available() < frame.remaining:
            return FrameStop.NEEDS_INPUT
        data = self._unmasked(frame, frame.remaining)
        self._frame = None
        return ControlFrame(frame.opcode, data)

    def _discard(self, frame: _Frame) -> FrameStop:
        size = min(frame.remaining, self._available())
        self._at += size
        frame.remaining -= size
        if frame.remaining:
            return FrameStop.NEEDS_INPUT
        self._is_open = not frame.is_last
        self._frame = None
        return FrameStop.PROGRESS

    def _read_data(self, frame: _Frame) -> FrameStop | ReceivedMessage:
        inflater = self._inflater if self._is_compressed else None
        if max(self._sent_bytes, len(self._message)) > self.limit:
            return FrameStop.OVER_LIMIT
        if inflater is not None and (inflater.has_more or frame.remaining == 0):
            return self._read_inflated(frame, inflater)
        if frame.remaining == 0:
            return self._end_frame(frame)
        size = min(frame.remaining, self._available(), STEP_BYTES)
        if size == 0:
            return FrameStop.NEEDS_INPUT
        if inflater is None:
            if len(self._message) + size > self.granted_bytes:
                return FrameStop.NEEDS_MEMORY
            self._message += self._unmasked(frame, size)
        else:
            inflater.feed(self._unmasked(frame, size))
        return FrameStop.PROGRESS

    def _read_inflated(self, frame: _Frame, inflater: _Inflater) -> FrameStop | ReceivedMessage:
        """Take the inflated output, then end the frame."""
        if not inflater.has_more:
            if not frame.is_last or inflater.is_finished:
                return self._end_frame(frame)
            inflater.finish()
        # One additional byte shows whether there is more; the end of a message adds none.
        room = min(self.limit, self.granted_bytes) + 1 - len(self._message)
        if room <= 0:
            return FrameStop.NEEDS_MEMORY
        self._message += inflater.take(min(room, STEP_BYTES))
        return FrameStop.PROGRESS

    def _end_frame(self, frame: _Frame) -> FrameStop | ReceivedMessage:
        self._frame = None
        if not frame.is_last:
            return FrameStop.PROGRESS
        data, self._message, self._is_open = bytes(self._message), bytearray(), False
        if self._inflater is not None and self._is_compressed:
            self._inflater.end()
        if self._is_text and not _is_utf8(data):
            raise WebSocketViolation(CloseCode.INVALID_DATA, "invalid UTF-8")
        return ReceivedMessage(data, self._is_text)

    def _unmasked(self, frame: _Frame, size: int) -> bytes:
        data = self._input[self._at : self._at + size]
        turn = frame.consumed % 4
        self._at += size
        frame.consumed += size
        frame.remaining -= size
        return apply_mask(data, frame.mask[turn:] + frame.mask[:turn]) if size else b""


class _Inflater:
    """Inflates messages, a bounded piece at a time."""

    def __init__(self, deflate: PerMessageDeflate) -> None:
        self._window_bits = deflate.remote_max_window_bits
        self._keeps_context = not deflate.remote_no_context_takeover
        self._decoder: zlib._Decompress | None = None
        self._input = b""
        #: Whether there may be more output.
        self.has_more = False
        #: Whether the end of the message was fed.
        self.is_finished = False

    def begin(self) -> None:
        """Begin a message."""
        if self._decoder is None:
            self._decoder = zlib.decompressobj(wbits=-self._window_bits)
        self.is_finished = False

    def end(self) -> None:
        """End a message. Reset the context, unless it is shared by messages."""
        if not self._keeps_context or (self._decoder is not None and self._decoder.eof):
            self._decoder = None

    def feed(self, data: bytes) -> None:
        """Add bytes of the message, after all output has been taken."""
        self._input, self.has_more = data, True

    def finish(self) -> None:
        """Add the end of the message that the sender omitted."""
        self.is_finished = True
        if self._decoder is None or not self._decoder.eof:
            self.feed(_EMPTY_BLOCK)

    def take(self, n_bytes: int) -> bytes:
        """Return at most `n_bytes` of output."""
        decoder = self._decoder
        if decoder is None or not self.has_more:
            return b""
        if decoder.eof:
            self._check_behind_end(self._input)
            self.has_more = False
            return b""
        try:
            data = decoder.decompress(self._input, n_bytes)
        except zlib.error:
            raise WebSocketViolation(CloseCode.PROTOCOL_ERROR, "decompression failed") from None
        self._input = decoder.unconsumed_tail
        self.has_more = bool(self._input) or len(data) == n_bytes
        self._note_end(decoder)
        return data

    def _note_end(self, decoder: zlib._Decompress) -> None:
        if decoder.eof:
            self._check_behind_end(decoder.unused_data)
            self.has_more = False

    def _check_behind_end(self, data: bytes) -> None:
        """Accept only what ends a message with a last block (RFC 7692, 7.2.3.4)."""
        if data not in (b"", b"\x00", _EMPTY_BLOCK, b"\x00" + _EMPTY_BLOCK):
            raise WebSocketViolation(CloseCode.PROTOCOL_ERROR, "data after the last block")


def _is_utf8(data: bytes) -> bool:
    """Return whether bytes are UTF-8, without creating a text of up to four times the size."""
    if data.isascii():
        return True
    decoder = codecs.getincrementaldecoder("utf-8")()
    view = memoryview(data)
    try:
        for begin in range(0, len(data), STEP_BYTES):
            decoder.decode(view[begin : begin + STEP_BYTES])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True
