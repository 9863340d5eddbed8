"""Checks `Host` against the names of this server, once for all handlers.

Any site can point a name at this server and make browsers call it under that name. An unchecked
name would end up in links and in decisions about origins. Probes are exempt: Kubernetes calls pods
by IP address, and their responses do not depend on the host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from django.http.request import split_domain_port, validate_host

#: Paths that are served for any host.
PROBES = frozenset({"/healthz", "/readyz", "/metrics"})


def host_check(hosts: Sequence[str]) -> Callable[[Iterable[tuple[bytes, bytes]]], bool]:
    """Return a function that decides from the headers whether a request is for one of `hosts`."""
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
