"""The part of a request that authentication reads, parsed by Django or by `data_plane.http`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class RequestHead(Protocol):
    """A request without its body."""

    @property
    def method(self) -> str | None: ...

    @property
    def scheme(self) -> str | None: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    @property
    def COOKIES(self) -> Mapping[str, str]: ...  # noqa: N802 -- Django's name

    def get_host(self) -> str: ...
