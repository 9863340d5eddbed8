"""A request's headers, parsed on demand.

Django makes a case-insensitive mapping of all headers for the first one that a view reads, which
was a twentieth of what a small request costs. Most requests are asked for three or four headers,
and each stands in `META` under a name that can be computed.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, lru_cache

from django.core.handlers.asgi import ASGIRequest
from django.http.request import HttpHeaders


class LazyHeaders(HttpHeaders):
    """Looks single headers up in `META`; all of them are gathered only to be listed."""

    def __init__(self, meta: Mapping[str, object]) -> None:
        # Not the base's, which gathers: `__getattr__` does that when the headers are listed.
        self._meta = meta

    def __getattr__(self, name: str) -> object:
        if name != "_store":
            raise AttributeError(name)
        super().__init__(dict(self._meta))
        return self._store

    def __getitem__(self, key: str) -> str:
        value = self._meta.get(_meta_name(key))
        if value is None:
            raise KeyError(key)
        return str(value)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and _meta_name(key) in self._meta


class LazyHeadersRequest(ASGIRequest):
    """Django's request with such headers."""

    @cached_property
    def headers(self) -> LazyHeaders:
        """What the client sent along."""
        return LazyHeaders(self.META)


@lru_cache(maxsize=256)
def _meta_name(name: str) -> str:
    plain = name.upper().replace("-", "_")
    return plain if plain in HttpHeaders.UNPREFIXED_HEADERS else f"{HttpHeaders.HTTP_PREFIX}{plain}"
