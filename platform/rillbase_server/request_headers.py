"""A request's headers, parsed on demand.

When a view reads a header, Django creates a case-insensitive mapping of all headers, which took a
twentieth of the time of a small request. Most views read three or four headers, and each has a
computable name in `META`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, lru_cache

from django.core.handlers.asgi import ASGIRequest
from django.http.request import HttpHeaders


class LazyHeaders(HttpHeaders):
    """Looks up single headers in `META`; collects all of them only to list them."""

    def __init__(self, meta: Mapping[str, object]) -> None:
        # The base's initializer would collect the headers; `__getattr__` does so when they are
        # listed.
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
    """A Django request with lazy headers."""

    @cached_property
    def headers(self) -> LazyHeaders:
        """The headers of the request."""
        return LazyHeaders(self.META)


@lru_cache(maxsize=256)
def _meta_name(name: str) -> str:
    plain = name.upper().replace("-", "_")
    return plain if plain in HttpHeaders.UNPREFIXED_HEADERS else f"{HttpHeaders.HTTP_PREFIX}{plain}"
