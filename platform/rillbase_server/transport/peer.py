"""Detects that a peer has disconnected while nothing is read from the connection."""

from __future__ import annotations

import asyncio
import socket

#: States of a connection whose peer has closed it (linux/tcp_states.h).
_CLOSED, _CLOSE_WAIT = 7, 8


def has_hung_up(transport: asyncio.Transport) -> bool:
    """Return whether the peer has closed the connection, without reading from it.

    False if the system does not report it.
    """
    sock = transport.get_extra_info("socket")
    option = getattr(socket, "TCP_INFO", None)
    if sock is None or option is None:
        return False
    try:
        state: int = sock.getsockopt(socket.IPPROTO_TCP, option, 1)[0]
    except OSError:
        return False
    return state in (_CLOSED, _CLOSE_WAIT)
