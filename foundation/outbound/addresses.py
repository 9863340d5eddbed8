"""Checks the addresses of tenant-chosen URLs: only public hosts are allowed.

IPv4 is checked against a list of everything that is not public. IPv6 is checked the other way
round, since nearly all of it is not public: only global unicast space is admitted, less the parts
of it that are reserved or that tunnel IPv4. Forms of IPv6 that embed an IPv4 address are rejected;
the exception is the well-known NAT64 prefix, under which an IPv6-only network sees the IPv4
internet: there the embedded address is checked.

The lists are written out because the standard library's idea of `is_global` changes with its
version.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

IpAddress = IPv4Address | IPv6Address

NOT_PUBLIC_V4 = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8",  # this network, unspecified
            "10.0.0.0/8",  # private
            "100.64.0.0/10",  # carrier-grade NAT; also a cloud's metadata (100.100.100.200)
            "127.0.0.0/8",  # loopback
            "168.63.129.16/32",  # a cloud's platform services
            "169.254.0.0/16",  # link-local; most clouds' metadata (169.254.169.254)
            "172.16.0.0/12",  # private
            "192.0.0.0/24",  # protocol assignments; a cloud's metadata (192.0.0.192)
            "192.0.2.0/24",  # documentation
            "192.31.196.0/24",  # AS112
            "192.52.193.0/24",  # AMT
            "192.88.99.0/24",  # 6to4 relays
            "192.168.0.0/16",  # private
            "192.175.48.0/24",  # AS112
            "198.18.0.0/15",  # benchmarks
            "198.51.100.0/24",  # documentation
            "203.0.113.0/24",  # documentation
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, broadcast
        ),
    )
)

GLOBAL_UNICAST_V6 = IPv6Network("2000::/3")
NOT_PUBLIC_V6 = tuple(
    map(
        IPv6Network,
        (
            "2001::/23",  # protocol assignments: Teredo, ORCHID, benchmarks
            "2001:db8::/32",  # documentation
            "2002::/16",  # 6to4
            "2620:4f:8000::/48",  # AS112
            "3fff::/20",  # documentation
        ),
    )
)
NAT64 = IPv6Network("64:ff9b::/96")


def is_public(address: IpAddress) -> bool:
    """Return whether the address belongs to a host on the public internet."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in NOT_PUBLIC_V4)
    if address in NAT64:
        return is_public(IPv4Address(int(address) & 0xFFFF_FFFF))
    return address in GLOBAL_UNICAST_V6 and not any(address in n for n in NOT_PUBLIC_V6)


def is_plain_loopback(address: IpAddress) -> bool:
    """Return whether the address is in 127.0.0.0/8 or is ::1, not in an embedded form."""
    return address.is_loopback and not (isinstance(address, IPv6Address) and address.ipv4_mapped)


def parse_address(text: str) -> IpAddress | None:
    """Parse an address as returned by a resolver."""
    try:
        return ip_address(text)
    except ValueError:
        return None
