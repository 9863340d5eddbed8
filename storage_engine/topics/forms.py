"""Request bodies for topics."""

from __future__ import annotations

from rest_framework import serializers

from foundation.api.bodies import BodySerializer
from storage_engine.models import Topic
from tenants.api.forms import NameField

DAY_S = 24 * 3600
DEFAULT_RETENTION_S, MAX_RETENTION_S = DAY_S, 400 * DAY_S
DEFAULT_DATA_BYTES, MAX_DATA_BYTES = 64 * 1024, 1024 * 1024
MAX_SIDES, MAX_DEPTH, MAX_LEAF_BITS = 16, 24, 48
_BOUNDS = 4


class Grid(BodySerializer):
    """How a plane is divided into cells."""

    bounds = serializers.ListField(
        child=serializers.FloatField(),
        min_length=_BOUNDS,
        max_length=_BOUNDS,
        help_text="West, south, east, north.",
    )
    sides = serializers.IntegerField(
        min_value=2, max_value=MAX_SIDES, default=2, help_text="Cells per side at each level."
    )
    depth = serializers.IntegerField(
        min_value=1, max_value=MAX_DEPTH, default=8, help_text="Number of levels."
    )

    def validate_bounds(self, bounds: list[float]) -> list[float]:
        west, south, east, north = bounds
        if not (west < east and south < north):
            raise serializers.ValidationError(
                "West must be less than east, and south less than north."
            )
        return bounds

    def validate(self, attrs: dict[str, object]) -> dict[str, object]:
        sides, depth = int(str(attrs.get("sides", 2))), int(str(attrs.get("depth", 8)))
        if (sides**2) ** depth > 1 << MAX_LEAF_BITS:
            raise serializers.ValidationError("The grid has too many cells.")
        return attrs


class TopicChange(BodySerializer):
    """The fields of a topic that can be changed."""

    retention_s = serializers.IntegerField(
        min_value=1,
        max_value=MAX_RETENTION_S,
        default=DEFAULT_RETENTION_S,
        help_text="Maximum life of a publication. Existing publications keep theirs.",
    )
    max_data_bytes = serializers.IntegerField(
        min_value=0,
        max_value=MAX_DATA_BYTES,
        default=DEFAULT_DATA_BYTES,
        help_text="Maximum size of a publication's data, as BSON.",
    )


class TopicCreation(TopicChange):
    """The fields of a new topic."""

    name = NameField()
    kind = serializers.ChoiceField(
        Topic.Kind.choices,
        default=Topic.Kind.HIERARCHY.value,
        help_text="How publications match subscriptions: by equal ids (`flat`), by ids above and "
        "below one another (`hierarchy`), by areas on earth (`geo`), or by areas of a plane "
        "(`plane`).",
    )
    grid = Grid(allow_null=True, default=None, help_text="Required for a `plane`.")

    def validate(self, attrs: dict[str, object]) -> dict[str, object]:
        if (attrs.get("kind") == Topic.Kind.PLANE) is (attrs.get("grid") is None):
            raise serializers.ValidationError(
                {"grid": "A grid is required for a `plane` and not allowed for other kinds."}
            )
        return attrs
