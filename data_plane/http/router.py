"""Finds the operation for a path with Starlette's routes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from starlette.routing import Match, Route

from data_plane.http.operation import HttpOperation
from foundation.errors import MethodNotAllowed, NotFound

C = TypeVar("C")

#: A route with the operations of its path by method.
_Route = tuple[Route, dict[str, HttpOperation[C]]]
#: A slash inside a segment is data, and `$` in a route's expression also matches before a newline.
#: Paths contain no NUL characters.
_ESCAPES = str.maketrans({"/": "\0s", "\n": "\0n"})


@dataclass(frozen=True, slots=True)
class RouteMatch(Generic[C]):
    """An operation and the values of its path's parameters."""

    operation: HttpOperation[C]
    parameters: dict[str, str]


class Router(Generic[C]):
    """Looks up a path. In Starlette the first route that matches wins, so fixed segments are sorted
    before parameters followed by a verb, as in `{upload}:commit`, and those before plain ones.
    """

    def __init__(self, operations: Iterable[HttpOperation[C]]) -> None:
        self.operations = tuple(operations)
        by_path: dict[str, dict[str, HttpOperation[C]]] = {}
        for operation in sorted(self.operations, key=_openness):
            by_path.setdefault(operation.path, {})[operation.method] = operation
        # Routes only match here: the data plane authenticates and calls the operation itself.
        self._by_length: dict[int, list[_Route[C]]] = {}
        for path, by_method in by_path.items():
            route = Route(path, by_method.get, methods=by_method)
            self._by_length.setdefault(path.count("/"), []).append((route, by_method))

    def find(self, method: str, segments: Sequence[str]) -> RouteMatch[C]:
        """Return the operation, or raise `NotFound` or `MethodNotAllowed`."""
        path = "".join("/" + segment.translate(_ESCAPES) for segment in segments)
        scope = {"type": "http", "method": method, "path": path}
        for route, by_method in self._by_length.get(len(segments), ()):
            match, matched = route.matches(scope)
            if match is Match.FULL:
                operation = by_method["GET" if method == "HEAD" else method]
                parameters = {
                    name: value.replace("\0s", "/").replace("\0n", "\n")
                    for name, value in matched["path_params"].items()
                }
                return RouteMatch(operation, parameters)
            if match is Match.PARTIAL:
                raise MethodNotAllowed(
                    f"The method {method[:20]} is not allowed for this path.",
                    headers={"Allow": ", ".join(sorted(by_method))},
                )
        raise NotFound("No such path.")


def _openness(operation: HttpOperation[C]) -> list[int]:
    return [segment.startswith("{") + segment.endswith("}") for segment in operation.segments]
