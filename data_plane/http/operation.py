"""The declaration of one call of the data plane: its path, its handler and its OpenAPI object."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from data_plane.http.response import CallResponse
from foundation.json_types import JsonObject

C = TypeVar("C")


@dataclass(frozen=True, slots=True)
class HttpOperation(Generic[C]):
    """`path` has parameters in braces. `describes` is the operation's OpenAPI object.

    `is_read`: a POST that changes nothing and accepts no idempotency key.
    """

    method: str
    path: str
    handler: Callable[[C], Awaitable[CallResponse]]
    describes: JsonObject = field(hash=False, compare=False)
    is_read: bool = False

    @property
    def segments(self) -> tuple[str, ...]:
        return tuple(self.path.split("/")[1:])
