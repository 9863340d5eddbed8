"""The kinds of measures, and the members that each kind requires."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from foundation.json_types import JsonObject, JsonValue

#: Digits after the decimal point that a decimal sum keeps.
MAX_SCALE, USUAL_SCALE = 18, 2
MAX_TOP = 100
MAX_QUANTILES = 10
#: The relative error allowed for a quantile.
LEAST_ERROR, USUAL_ERROR, LARGEST_ERROR = 0.001, 0.01, 0.2
USUAL_QUANTILES: list[JsonValue] = [0.5, 0.95]
USUAL_TOP = 10
TYPES = ("int", "decimal", "double")


@dataclass(frozen=True, slots=True)
class MeasureKind:
    """A kind of measure: its members, and which of them are required."""

    members: tuple[str, ...]
    required: tuple[str, ...] = ()
    #: Defaults of members that are not given.
    usual: Mapping[str, JsonValue] = field(default_factory=dict)


_ADDED = MeasureKind(("field", "type", "scale"), ("field",), {"type": "double"})
_COMPARED = MeasureKind(("field",), ("field",))
OPS: Mapping[str, MeasureKind] = MappingProxyType(
    {
        "count": MeasureKind(()),
        "sum": _ADDED,
        "avg": _ADDED,
        "min": _COMPARED,
        "max": _COMPARED,
        "distinct": _COMPARED,
        "quantiles": MeasureKind(
            ("field", "quantiles", "accuracy"),
            ("field",),
            {"quantiles": USUAL_QUANTILES, "accuracy": USUAL_ERROR},
        ),
        "top": MeasureKind(("field", "k"), ("field",), {"k": USUAL_TOP}),
    }
)


def completed(measure: JsonObject) -> JsonObject:
    """Return a checked measure with defaults filled in, its members always in the same order."""
    op = OPS[str(measure["op"])]
    members = {**op.usual, **{name: v for name, v in measure.items() if v is not None}}
    if members.get("type") == "decimal":
        members.setdefault("scale", USUAL_SCALE)
    return {name: members[name] for name in ("op", *op.members) if name in members}


def invalid_member(measure: JsonObject) -> tuple[str, str] | None:
    """Return an invalid member and the reason. The types have been checked already."""
    op = OPS[str(measure["op"])]
    for name in measure:
        if name != "op" and name not in op.members:
            return name, f"Measures with the operator {measure['op']} have no such field."
    for name in op.required:
        if measure.get(name) is None:
            return name, "This field is required."
    if measure.get("scale") is not None and measure.get("type") != "decimal":
        return "scale", "Only decimals have a scale."
    return None
