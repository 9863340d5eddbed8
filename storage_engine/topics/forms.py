"""What a caller may say of a topic."""

from __future__ import annotations

from rest_framework import serializers

from foundation.api.bodies import Body
from storage_engine.models import Topic
from tenants.api.forms import NameField

DAY_S = 24 * 3600
DEFAULT_RETENTION_S, MAX_RETENTION_S = DAY_S, 400 * DAY_S
DEFAULT_DATA_BYTES, MAX_DATA_BYTES = 64 * 1024, 1024 * 1024
MAX_SIDES, MAX_DEPTH, MAX_LEAF_BITS = 16, 24, 48
_BOUNDS = 4


class Grid(Body):
    """How a plane is cut into cells."""

    bounds = serializers.ListField(
        child=serializers.FloatField(),
        min_length=_BOUNDS,
        max_length=_BOUNDS,
        help_text="West, south, east, north.",
    )
    sides = serializers.IntegerField(
        min_value=2, max_value=MAX_SIDES, default=2, help_text="Cells of a side, at each level."
    )
    depth = serializers.IntegerField(
        min_value=1, max_value=MAX_DEPTH, default=8, help_text="How many levels there are."
    )

    def validate_bounds(self, bounds: list[float]) -> list[float]:
        west, south, east, north = bounds
        if not (west < east and south < north):
            raise serializers.ValidationError("West lies before east, south before north.")
        return bounds

    def validate(self, attrs: dict[str, object]) -> dict[str, object]:
        sides, depth = int(str(attrs.get("sides", 2))), int(str(attrs.get("depth", 8)))
        if (sides**2) ** depth > 1 << MAX_LEAF_BITS:
            raise serializers.ValidationError("The grid has too many cells.")
        return attrs


class TopicChange(Body):
    """What may be changed of a topic."""

    retention_s = serializers.IntegerField(
        min_value=1,
        max_value=MAX_RETENTION_S,
        default=DEFAULT_RETENTION_S,
        help_text="The longest life of a publication. Those that are there keep their end.",
    )
    max_data_bytes = serializers.IntegerField(
        min_value=0,
        max_value=MAX_DATA_BYTES,
        default=DEFAULT_DATA_BYTES,
        help_text="The most that a publication may carry, as BSON.",
    )


class TopicCreation(TopicChange):
    """What a new topic needs."""

    name = NameField()
    kind = serializers.ChoiceField(
        Topic.Kind.choices,
        default=Topic.Kind.HIERARCHY.value,
        help_text="What meets: equal ids (`flat`), ids above and below one another (`hierarchy`), "
        "areas on earth (`geo`), areas of a plane (`plane`).",
    )
    grid = Grid(allow_null=True, default=None, help_text="For a `plane`.")

    def validate(self, attrs: dict[str, object]) -> dict[str, object]:
        if (attrs.get("kind") == Topic.Kind.PLANE) is (attrs.get("grid") is None):
            raise serializers.ValidationError(
                {"grid": "A plane has a grid, and nothing else has one."}
            )
        return attrs
