"""Frames that are encoded here are those of the library."""

from __future__ import annotations

import pytest
from websockets.frames import Frame, Opcode

from rillbase_server.transport.frame_encoding import encode_message


@pytest.mark.parametrize("size", [0, 1, 125, 126, 65_535, 65_536])
@pytest.mark.parametrize("opcode", [Opcode.TEXT, Opcode.BINARY])
def test_a_message_is_encoded_as_the_library_encodes_it(opcode: Opcode, size: int) -> None:
    payload = b"x" * size
    assert encode_message(opcode, payload) == Frame(opcode, payload).serialize(mask=False)
