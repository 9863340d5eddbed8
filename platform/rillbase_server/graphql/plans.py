"""Plans, and the completion of their leaf values. A plan completes all objects of a type for one
selection, in one call that builds the dictionary. A leaf is first tested for whether its value
already has the form of the response, as nearly all values have.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from graphql import GraphQLBoolean, GraphQLID, GraphQLInt, GraphQLString

#: Converts a value to the form of the response, or raises.
Complete: TypeAlias = Callable[[Any], object]
#: A field: its name in the response, its reader, and the completion of its value.
Step: TypeAlias = tuple[str, Callable[[Any], Any], Complete]
#: Plans by type and nodes of the selection; None: the executor completes it.
Plans: TypeAlias = dict[tuple[str, tuple[int, ...]], Complete | None]

MIN_INT, MAX_INT = -(2**31), 2**31 - 1
#: Scalars whose values need no conversion, and the types of these.
_AS_THEY_ARE: dict[object, type] = {GraphQLString: str, GraphQLID: str, GraphQLBoolean: bool}


class NotAsDeclared(Exception):
    """A value that the executor has to complete."""


def leaf(leaf_type: Any, *, required: bool) -> Complete:
    """Return the completion of a scalar or an enum."""
    general = _leaf_completion(leaf_type, required=required)
    if leaf_type is GraphQLInt:
        return lambda value: (
            value if value.__class__ is int and MIN_INT <= value <= MAX_INT else general(value)
        )
    as_it_is = _AS_THEY_ARE.get(leaf_type)
    if as_it_is is None:
        return general
    return lambda value: value if value.__class__ is as_it_is else general(value)


def _leaf_completion(leaf_type: Any, *, required: bool) -> Complete:
    coerce = leaf_type.coerce_output_value

    def completed(value: Any) -> object:
        if value is None and not required:
            return None
        coerced = None if value is None else coerce(value)
        if coerced is None:
            raise NotAsDeclared
        return coerced

    return completed


def list_of(complete: Complete, *, required: bool) -> Complete:
    """Return the completion of lists."""

    def completed(value: Any) -> object:
        if value is None and not required:
            return None
        if not isinstance(value, list):
            raise NotAsDeclared
        return [complete(item) for item in value]

    return completed


def object_of(steps: list[Step]) -> Complete:
    """Return the completion of non-null objects."""

    def completed(source: Any) -> object:
        if source is None:
            raise NotAsDeclared
        members = {}
        for shown, read, complete in steps:
            members[shown] = complete(read(source))
        return members

    return completed


def unless_null(complete: Complete) -> Complete:
    """Return the completion of nullable objects."""
    return lambda value: None if value is None else complete(value)
