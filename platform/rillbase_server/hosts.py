"""Which `Host` the server answers to, decided once for everything behind the edge.

A page of any site can make its visitors' browsers call this server under a name of its own, and a
name that is believed ends up in links and in decisions about origins. Probes are exempt: Kubernetes
asks a pod by its address, and what they are told is the same for all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from django.http.request import split_domain_port, validate_host

#: Answered whatever the host is.
PROBES = frozenset({"/healthz", "/readyz", "/metrics"})


def host_check(hosts: Sequence[str]) -> Callable[[Iterable[tuple[bytes, bytes]]], bool]:
    """Return what tells by its headers whether a request is for one of these hosts."""
    if "*" in hosts:
        return lambda _: True

    @lru_cache(maxsize=256)
    def is_served(host: bytes) -> bool:
        domain, _ = split_domain_port(host.decode("latin-1"))
        return bool(domain) and validate_host(domain, hosts)

    def check(headers: Iterable[tuple[bytes, bytes]]) -> bool:
        named = [value for name, value in headers if name == b"host"]
        return len(named) == 1 and is_served(named[0])

    return check
