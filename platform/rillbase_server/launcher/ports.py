"""Finds free TCP ports, and the processes that listen on others."""

import errno
import random
import socket
from collections.abc import Collection
from contextlib import suppress

import psutil

# Below the range of local ports for outgoing connections (32768 on Linux, 49152 elsewhere), so a
# server's port is still free after a restart.
FIRST_PORT = 20_000
LAST_PORT = 32_000
ATTEMPTS = 200
LOOPBACK = "127.0.0.1"


def bind_problem(host: str, port: int) -> OSError | None:
    """Return why a server could not listen on ``host``:``port`` now, or None."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            # Another server may have bound the port with SO_REUSEADDR, too: only `listen` detects
            # it.
            probe.listen(1)
    except OSError as error:
        return error
    return None


def free_port(host: str = LOOPBACK, avoid: Collection[int] = ()) -> int:
    """Return a free port, chosen at random so that concurrent callers rarely collide."""
    for _ in range(ATTEMPTS):
        port = random.randint(FIRST_PORT, LAST_PORT)  # noqa: S311 - not a secret
        if port not in avoid and bind_problem(host, port) is None:
            return port
    raise OSError(errno.EADDRINUSE, f"no free port between {FIRST_PORT} and {LAST_PORT}")


def holder(port: int) -> psutil.Process | None:
    """Return the process that listens on ``port``, if the system reveals it."""
    with suppress(psutil.Error):
        for connection in psutil.net_connections(kind="tcp"):
            local = connection.laddr
            listening = connection.status == psutil.CONN_LISTEN
            if listening and local and local.port == port and connection.pid:
                return psutil.Process(connection.pid)
    return None
