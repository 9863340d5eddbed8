"""Finds the operation for a path."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from data_plane.http.operation import HttpOperation
from foundation.errors import MethodNotAllowed, NotFound

C = TypeVar("C")


@dataclass(frozen=True, slots=True)
class RouteMatch(Generic[C]):
    """An operation and the values of its path's parameters."""

    operation: HttpOperation[C]
    parameters: dict[str, str]


class _Route(Generic[C]):
    """All operations of one path."""

    def __init__(self, pattern: tuple[str, ...]) -> None:
        self.pattern = pattern
        self.by_method: dict[str, HttpOperation[C]] = {}

    def parameters(self, segments: Sequence[str]) -> dict[str, str] | None:
        values = {}
        for segment, given in zip(self.pattern, segments, strict=True):
            if segment.startswith("{"):
                name, _, verb = segment[1:].partition("}")
                if not given.endswith(verb) or len(given) == len(verb):
                    return None
                values[name] = given.removesuffix(verb)
            elif segment != given:
                return None
        return values


class Router(Generic[C]):
    """Looks up a path segment by segment. Fixed segments take precedence over parameters, and
    parameters followed by a verb, as in `{upload}:commit`, over those without.
    """

    def __init__(self, operations: Iterable[HttpOperation[C]]) -> None:
        self.operations = tuple(operations)
        places: dict[tuple[str, ...], _Route[C]] = {}
        for operation in self.operations:
            pattern = operation.segments
            place = places.setdefault(pattern, _Route(pattern))
            place.by_method[operation.method] = operation
        self._by_length: dict[int, list[_Route[C]]] = {}
        for pattern, place in sorted(places.items(), key=lambda item: _openness(item[0])):
            self._by_length.setdefault(len(pattern), []).append(place)

    def find(self, method: str, segments: Sequence[str]) -> RouteMatch[C]:
        """Return the operation, or raise `NotFound` or `MethodNotAllowed`."""
        for place in self._by_length.get(len(segments), ()):
            parameters = place.parameters(segments)
            if parameters is None:
                continue
            operation = place.by_method.get("GET" if method == "HEAD" else method)
            if operation is None:
                allowed = ", ".join(sorted(place.by_method))
                raise MethodNotAllowed(
                    f"The method {method[:20]} is not allowed for this path.",
                    headers={"Allow": allowed},
                )
            return RouteMatch(operation, parameters)
        raise NotFound("No such path.")


def _openness(pattern: tuple[str, ...]) -> list[int]:
    return [segment.startswith("{") + segment.endswith("}") for segment in pattern]
