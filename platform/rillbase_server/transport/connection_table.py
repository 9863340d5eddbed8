"""All connections of one server process, from the time they are accepted. Their number is limited,
in total and per address. Beyond the limit, the oldest unauthenticated connection is closed, or the
new one if there is none. Once a second each connection is checked for missed deadlines, which costs
less than a timer for each request.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable
from ipaddress import IPv6Address, ip_address
from typing import Protocol

from foundation.message_memory import MessageMemory
from foundation.metrics import CONNECTIONS, CONNECTIONS_CLOSED
from rillbase_server.client_address import TrustedProxies
from rillbase_server.transport.allocator import TrimSchedule, resident_bytes, return_free_pages
from rillbase_server.transport.outgoing_flow import Backlog
from rillbase_server.transport.transport_limits import TransportLimits

CHECK_INTERVAL_S = 1.0
#: The prefix usually assigned to one IPv6 customer.
IPV6_NETWORK_BITS = 64
READ_BYTES = 64 * 1024


class Owner(Protocol):
    """The protocol that currently uses a connection."""

    def check(self, now_s: float) -> None:
        """End the connection if it has missed a deadline."""

    def backlog(self) -> Backlog | None:
        """Return the data that the client does not read; None if it reads everything."""

    def abort(self) -> None:
        """End the connection at once."""


class ConnectionEntry:
    """One connection. Applications call `authenticated`, from any thread."""

    __slots__ = ("_on_authenticated", "address", "is_authenticated", "owner")

    def __init__(self, owner: Owner, address: Hashable | None) -> None:
        #: None: the connection is no longer in the table.
        self.owner: Owner | None = owner
        self.address = address
        self.is_authenticated = False
        self._on_authenticated: Callable[[], None] | None = None

    def authenticated(self) -> None:
        """Record that credentials from this connection were verified."""
        if not self.is_authenticated:
            self.is_authenticated = True
            if self._on_authenticated is not None:
                self._on_authenticated()

    @property
    def is_closed(self) -> bool:
        return self.owner is None

    def reset_authentication(self, on_authenticated: Callable[[], None]) -> None:
        """Discard the authentication. `on_authenticated` is called in the verifying thread."""
        self.is_authenticated = False
        self._on_authenticated = on_authenticated

    def detach(self) -> None:
        """Drop the references to the connection's protocol, so it is freed immediately."""
        self.owner = self._on_authenticated = None


class ConnectionTable:
    """The connections of one event loop."""

    def __init__(self, bounds: TransportLimits) -> None:
        self.bounds = bounds
        self.memory = MessageMemory(bounds.message_memory_bytes)
        #: The read buffer of all connections, since reads do not overlap.
        self.read_buffer = memoryview(bytearray(READ_BYTES))
        self._proxies = TrustedProxies(bounds.trusted_proxies)
        self._all = _Group()
        self._by_address: dict[Hashable, _Group] = {}
        self._sweep: asyncio.TimerHandle | None = None
        self._trims = TrimSchedule(resident_bytes)

    def admit(self, owner: Owner, peer: str | None) -> ConnectionEntry | None:
        """Add a connection; None if the limit is reached."""
        address = self._address(peer)
        group = self._by_address.get(address) if address is not None else None
        if group is not None and not self._has_room(group, self.bounds.connections_per_address):
            return None
        if not self._has_room(self._all, self.bounds.connections):
            return None
        entry = ConnectionEntry(owner, address)
        self._all.add(entry)
        if address is not None:
            self._by_address.setdefault(address, _Group()).add(entry)
        CONNECTIONS.set(len(self._all))
        self._keep_sweeping()
        return entry

    def remove(self, entry: ConnectionEntry) -> None:
        """Remove a connection. Idempotent."""
        if not self._all.discard(entry):
            return
        entry.detach()
        CONNECTIONS.set(len(self._all))
        group = self._by_address.get(entry.address) if entry.address is not None else None
        if group is not None:
            group.discard(entry)
            if not len(group):
                del self._by_address[entry.address]

    def reset_authentication(
        self, entry: ConnectionEntry, on_authenticated: Callable[[], None]
    ) -> None:
        """Treat a connection as unauthenticated again: a proxy may reuse it for another client."""
        entry.reset_authentication(on_authenticated)
        self._all.reset_authentication(entry)
        if entry.address in self._by_address:
            self._by_address[entry.address].reset_authentication(entry)

    def _has_room(self, group: _Group, limit: int) -> bool:
        """Return whether one more is allowed, after closing another one if possible."""
        if len(group) < limit:
            return True
        reason = "full" if group is self._all else "address_full"
        victim = group.oldest_unauthenticated()
        if victim is None:
            CONNECTIONS_CLOSED.labels(f"{reason}_refused").inc()
            return False
        CONNECTIONS_CLOSED.labels(f"{reason}_evicted").inc()
        owner = victim.owner
        self.remove(victim)
        if owner is not None:
            owner.abort()
        return True

    def _address(self, peer: str | None) -> Hashable | None:
        """Return the key for counting a peer; None for proxies and peers without an address."""
        if peer is None or self._proxies.trust(peer):
            return None
        return peer if ":" not in peer else _ipv6_network(peer)

    def _bound_backlogs(self, backlogs: list[tuple[Backlog, Owner]]) -> None:
        """Disconnect the longest-slow clients while the total backlog exceeds its limit."""
        excess_bytes = sum(backlog.n_bytes for backlog, _ in backlogs)
        excess_bytes -= self.bounds.response_memory_bytes
        if excess_bytes <= 0:
            return
        for backlog, owner in sorted(backlogs, key=lambda waiting: waiting[0].since_s):
            CONNECTIONS_CLOSED.labels("response_memory").inc()
            owner.abort()
            excess_bytes -= backlog.n_bytes
            if excess_bytes <= 0:
                return

    def _keep_sweeping(self) -> None:
        if self._sweep is None:
            loop = asyncio.get_running_loop()
            self._sweep = loop.call_later(CHECK_INTERVAL_S, self._check_all, loop)

    def _check_all(self, loop: asyncio.AbstractEventLoop) -> None:
        self._sweep = None
        now_s = loop.time()
        backlogs = list[tuple[Backlog, Owner]]()
        for entry in self._all.entries():
            # A check may remove other connections.
            if (owner := entry.owner) is not None:
                owner.check(now_s)
                if (backlog := owner.backlog()) is not None:
                    backlogs.append((backlog, owner))
        self._bound_backlogs(backlogs)
        if self._trims.is_due(now_s):
            loop.run_in_executor(None, return_free_pages)
        if len(self._all) or self._trims.is_waiting:
            self._sweep = loop.call_later(CHECK_INTERVAL_S, self._check_all, loop)


class _Group:
    """Connections, and those that may be unauthenticated, in order of age."""

    def __init__(self) -> None:
        self._entries: set[ConnectionEntry] = set()
        self._unauthenticated: OrderedDict[ConnectionEntry, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def entries(self) -> list[ConnectionEntry]:
        return list(self._entries)

    def add(self, entry: ConnectionEntry) -> None:
        self._entries.add(entry)
        self._unauthenticated[entry] = None

    def discard(self, entry: ConnectionEntry) -> bool:
        if entry not in self._entries:
            return False
        self._entries.discard(entry)
        self._unauthenticated.pop(entry, None)
        return True

    def reset_authentication(self, entry: ConnectionEntry) -> None:
        if entry in self._entries:
            self._unauthenticated[entry] = None

    def oldest_unauthenticated(self) -> ConnectionEntry | None:
        while self._unauthenticated:
            oldest = next(iter(self._unauthenticated))
            if not oldest.is_authenticated:
                return oldest
            # Other threads may authenticate connections, so these are removed lazily here.
            del self._unauthenticated[oldest]
        return None


def _ipv6_network(peer: str) -> Hashable:
    try:
        address = ip_address(peer.partition("%")[0])
    except ValueError:
        return peer
    if not isinstance(address, IPv6Address):
        return peer
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return int(address) >> (128 - IPV6_NETWORK_BITS)
