"""Limits on the cost of a connection, especially before authentication."""

from __future__ import annotations

import resource
from collections.abc import Sequence
from dataclasses import dataclass

from foundation.environment import Environment
from rillbase_server.client_address import Network

#: Maximum number of headers of a request, and of trailers.
MAX_HEADERS = 128
#: Maximum bytes of a WebSocket message before authentication, as sent and inflated.
MAX_GREETING_BYTES = 8 * 1024
MAX_MESSAGE_BYTES = 32 * 1024 * 1024
#: Longer messages are sent in a task: compressing them would delay other connections.
MAX_AT_ONCE_BYTES = 16 * 1024
#: Memory for processing a message, in multiples of its size: parsed JSON is larger than its text
#: (measured: 13 times for a list of digits, 2 for one string).
WORK_FACTOR = 12
#: File descriptors reserved for other purposes: databases, logs, loaded files.
RESERVED_DESCRIPTORS = 512
MIN_CONNECTIONS = 16


@dataclass(frozen=True, slots=True)
class TransportLimits:
    """The limits of one server process."""

    header_bytes: int = 64 * 1024
    headers: int = MAX_HEADERS
    header_timeout_s: float = 10.0
    min_bytes_per_s: int = 1024
    transfer_window_s: float = 10.0
    connections: int = 10_000
    connections_per_address: int = 2_048
    message_memory_bytes: int = 128 * 1024 * 1024
    response_memory_bytes: int = 128 * 1024 * 1024
    trusted_proxies: Sequence[Network] = ()

    @classmethod
    def of(cls, environment: Environment) -> TransportLimits:
        return cls(
            header_bytes=environment.rillbase_header_max_bytes,
            header_timeout_s=environment.rillbase_header_timeout_s,
            min_bytes_per_s=environment.rillbase_transfer_min_bytes_per_s,
            transfer_window_s=environment.rillbase_transfer_window_s,
            connections=_connections(environment.rillbase_connections_max),
            connections_per_address=environment.rillbase_connections_per_address,
            message_memory_bytes=environment.rillbase_message_memory_mib * 1024 * 1024,
            response_memory_bytes=environment.rillbase_response_memory_mib * 1024 * 1024,
            trusted_proxies=environment.rillbase_trusted_proxies,
        )


def _connections(configured: int) -> int:
    """Raise the limit on open files, and return how many connections it allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = configured + RESERVED_DESCRIPTORS
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY:
        return configured
    return max(MIN_CONNECTIONS, min(configured, soft - RESERVED_DESCRIPTORS))
