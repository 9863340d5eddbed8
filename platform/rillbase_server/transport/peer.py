"""Whether the other end of a connection is still there, while nothing is read from it."""

from __future__ import annotations

import asyncio
import socket

#: States of a connection whose peer has closed it (linux/tcp_states.h).
_CLOSED, _CLOSE_WAIT = 7, 8


def has_hung_up(transport: asyncio.Transport) -> bool:
    """Tell whether the peer has closed the connection. Only a read would show it otherwise.

    False where the system does not tell.
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
