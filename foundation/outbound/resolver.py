"""Resolves host names within a deadline. The system's resolver has no deadline, so a lookup runs in
a dedicated thread that is abandoned when it takes too long. The number of abandoned threads is
bounded.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue

from foundation.outbound.errors import TargetTimeout, TargetUnreachable

Resolver = Callable[[str, int, float], Sequence[str]]
"""Resolves host and port to addresses within the given number of seconds."""

MAX_LOOKUPS = 64
_slots = threading.BoundedSemaphore(MAX_LOOKUPS)


def resolve(host: str, port: int, timeout_s: float) -> Sequence[str]:
    """Ask the system's resolver for all addresses of a host."""
    if not _slots.acquire(timeout=timeout_s):
        raise TargetTimeout("Resolving the host name took too long.")
    results: SimpleQueue[list[str] | OSError | UnicodeError] = SimpleQueue()
    threading.Thread(
        target=_look_up, args=(host, port, results), name="resolver", daemon=True
    ).start()
    try:
        result = results.get(timeout=timeout_s)
    except Empty:
        raise TargetTimeout("Resolving the host name took too long.") from None
    if isinstance(result, Exception):
        raise TargetUnreachable("The host name could not be resolved.") from result
    return result


def _look_up(
    host: str, port: int, results: SimpleQueue[list[str] | OSError | UnicodeError]
) -> None:
    try:
        entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        results.put(list(dict.fromkeys(str(entry[4][0]) for entry in entries)))
    except (OSError, UnicodeError) as error:
        results.put(error)
    finally:
        _slots.release()
