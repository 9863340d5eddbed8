"""Determines the client's address behind proxies.

The caller and each proxy append to `X-Forwarded-For`, so only its end can be trusted: entries are
read from the right as long as a trusted proxy wrote them. The first address that is not a trusted
proxy's is the client's.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

Network = IPv4Network | IPv6Network
MAX_FORWARDED_ENTRIES = 32


class TrustedProxies:
    """The networks of proxies whose `X-Forwarded-For` entries are trusted."""

    def __init__(self, networks: Sequence[Network]) -> None:
        self._networks = tuple(networks)

    def trust(self, address: str) -> bool:
        if not self._networks:
            return False
        parsed = _parse(address)
        return parsed is not None and any(parsed in network for network in self._networks)

    def client(self, peer: str, forwarded_for: str) -> str:
        """Return the client's address, given the connection's peer and the header's value."""
        if not forwarded_for or not self.trust(peer):
            return peer
        client = peer
        for entry in reversed(forwarded_for.split(",")[-MAX_FORWARDED_ENTRIES:]):
            address = _parse(_without_port(entry.strip()))
            if address is None:
                break
            client = str(address)
            if not self.trust(client):
                break
        return client


def _parse(text: str) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def _without_port(entry: str) -> str:
    if entry.startswith("["):
        return entry[1:].partition("]")[0]
    host, colon, _ = entry.partition(":")
    return host if colon and entry.count(":") == 1 else entry
