"""Compression of outgoing messages that takes no memory until it is used.

The `websockets` library creates both zlib contexts with the connection: 45 KB, which idle clients
never need. Here, the encoder is created for the first message that is worth compressing, and
received messages are inflated by `websocket_frames.py`. Short messages (welcome, heartbeats,
acknowledgements) are sent uncompressed, which the extension allows.
"""

from __future__ import annotations

import zlib

from websockets.extensions.permessage_deflate import PerMessageDeflate
from websockets.frames import Frame

#: Shorter messages are not worth compressing.
MIN_BYTES = 128


class LazyDeflate(PerMessageDeflate):
    """permessage-deflate with the parameters that were negotiated."""

    def __init__(self, negotiated: PerMessageDeflate) -> None:
        # The base's initializer would create the contexts.
        self.remote_no_context_takeover = negotiated.remote_no_context_takeover
        self.local_no_context_takeover = negotiated.local_no_context_takeover
        self.remote_max_window_bits = negotiated.remote_max_window_bits
        self.local_max_window_bits = negotiated.local_max_window_bits
        self.compress_settings = negotiated.compress_settings
        self._has_encoder = False

    def encode(self, frame: Frame) -> Frame:
        if frame.fin and len(frame.data) < MIN_BYTES:
            return frame
        if not self._has_encoder and not self.local_no_context_takeover:
            self._has_encoder = True
            self.encoder = zlib.compressobj(
                wbits=-self.local_max_window_bits, **self.compress_settings
            )
        return super().encode(frame)
