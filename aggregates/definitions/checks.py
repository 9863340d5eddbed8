"""Checks across the parts of a definition. Each part has been validated on its own already."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from aggregates.definitions.forms import seconds
from foundation.errors import FieldProblem, InvalidBody
from foundation.json_types import JsonObject


def check(definition: Mapping[str, object], retention: str | None) -> None:
    """Raise an error for everything that is wrong with a whole definition."""
    problems = [
        *_names(definition),
        *_rollups(definition),
        *_retention(definition, retention),
    ]
    if problems:
        raise InvalidBody(errors=problems)


def _names(definition: Mapping[str, object]) -> Iterator[FieldProblem]:
    """Report names that a row would have more than once."""
    dimensions = cast("list[str]", definition["dimensions"])
    time = cast("JsonObject | None", definition["time"])
    if time is not None and time["field"] in dimensions:
        yield _wrong("/time/field", "A dimension already has this name.")
    field_names = [*dimensions, *([str(time["field"])] if time is not None else [])]
    for name in cast("JsonObject", definition["measures"]):
        if name in field_names:
            yield _wrong(
                f"/measures/{name}", "A dimension or the time field already has this name."
            )


def _rollups(definition: Mapping[str, object]) -> Iterator[FieldProblem]:
    dimensions = cast("list[str]", definition["dimensions"])
    seen: set[tuple[str, ...]] = set()
    for index, rollup in enumerate(cast("list[list[str]]", definition["rollups"])):
        named = tuple(rollup)
        unknown = [name for name in rollup if name not in dimensions]
        if unknown:
            yield _wrong(f"/rollups/{index}", f"The dimension {unknown[0]!r} does not exist.")
        elif len(set(named)) < len(named) or tuple(sorted(named)) in seen:
            yield _wrong(f"/rollups/{index}", "A field is named twice.")
        elif set(named) == set(dimensions):
            yield _wrong(f"/rollups/{index}", "Rows for all dimensions always exist.")
        seen.add(tuple(sorted(named)))


def _retention(definition: Mapping[str, object], retention: str | None) -> Iterator[FieldProblem]:
    if retention is None:
        return
    time = cast("JsonObject | None", definition["time"])
    if time is None:
        yield _wrong("/retention", "`retention` requires `time`, because only buckets expire.")
    elif seconds(retention) < seconds(str(time["bucket"])):
        yield _wrong("/retention", "`retention` must be at least one bucket.")


def _wrong(pointer: str, detail: str) -> FieldProblem:
    return FieldProblem(pointer, "invalid", detail)
