"""The fields of an index."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

#: Orders of spatial indexes: geometries by cells of the sphere, and pairs by cells of the plane.
SPATIAL_ORDERS = ("2dsphere", "2d")

#: A direction, 1 or -1, or a spatial order.
FieldOrder: TypeAlias = int | str
#: Paths with their orders.
IndexFields: TypeAlias = tuple[tuple[str, FieldOrder], ...]


def parse_index_fields(stored: Iterable[tuple[object, object]]) -> IndexFields:
    """Return the fields of an index from JSON."""
    return tuple(
        (str(path), order if isinstance(order, str) else int(str(order))) for path, order in stored
    )


def is_spatial(fields: IndexFields) -> bool:
    """Return whether an index finds geometries."""
    return any(order in SPATIAL_ORDERS for _, order in fields)
