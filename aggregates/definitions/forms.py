"""Request bodies for aggregates."""

from __future__ import annotations

import re

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from aggregates.definitions import measures
from foundation.api.bodies import BodySerializer
from foundation.json_types import JsonObject
from tenants.api.forms import NameField, PatternField

MAX_DIMENSIONS, MAX_MEASURES, MAX_ROLLUPS = 16, 64, 16
MAX_FIELD_CHARS = 100
#: A member of rows beside dimensions, time and measures.
RESERVED = "previous"
DAY_S = 86_400
_UNITS_S = {"s": 1, "m": 60, "h": 3_600, "d": DAY_S}
_SPAN = re.compile(r"([1-9]\d{0,5})([smhd])")
MAX_BUCKET_S, MAX_RETENTION_S = 31 * DAY_S, 3_660 * DAY_S


def seconds(span: str) -> int:
    """Return the length of a span such as `5m`."""
    form = _SPAN.fullmatch(span)
    if form is None:
        raise ValueError(span)
    return int(form[1]) * _UNITS_S[form[2]]


class SpanField(serializers.CharField):
    """A span of time."""

    def __init__(self, *, most_s: int, **kwargs: object) -> None:
        self._most_s = most_s
        super().__init__(**kwargs)  # type: ignore[arg-type]

    def to_internal_value(self, data: object) -> str:
        text = str(super().to_internal_value(data))  # type: ignore[arg-type]
        if not (_SPAN.fullmatch(text) and seconds(text) <= self._most_s):
            raise serializers.ValidationError(
                f"A number followed by s, m, h or d, such as 5m; at most {self._most_s // DAY_S}d.",
                "invalid_span",
            )
        return text


class EventField(PatternField):
    """A path to a field of events, or of documents."""

    pattern = re.compile(
        rf"(?=.{{1,{MAX_FIELD_CHARS}}}\Z)[A-Za-z_][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*"
    )
    complaint = (
        "1 to 100 characters: letters, digits, _ and -; dots separate the fields of embedded "
        "objects."
    )


class MeasureField(PatternField):
    """The name of a measure."""

    pattern = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
    complaint = "1 to 63 characters: a letter, then letters, digits and _."


class TimeSerializer(BodySerializer):
    """Rows are kept for each bucket of time."""

    field = EventField(help_text="The field of an event that contains its time.")
    bucket = SpanField(most_s=MAX_BUCKET_S, help_text="Size of a time bucket, such as 5m.")

    def validate(self, attrs: dict[str, object]) -> dict[str, object]:
        return _complete(attrs, "field", "bucket")


class MeasureSerializer(BodySerializer):
    """One number of each row."""

    op = serializers.ChoiceField(list(measures.OPS))
    field = EventField(required=False)
    type = serializers.ChoiceField(measures.TYPES, required=False)
    scale = serializers.IntegerField(
        min_value=0,
        max_value=measures.MAX_SCALE,
        required=False,
        help_text="Number of decimal places. Only for decimals.",
    )
    quantiles = serializers.ListField(
        child=serializers.FloatField(min_value=0, max_value=1),
        min_length=1,
        max_length=measures.MAX_QUANTILES,
        required=False,
        help_text="The quantiles to compute, such as [0.5, 0.99].",
    )
    accuracy = serializers.FloatField(
        min_value=measures.LEAST_ERROR,
        max_value=measures.LARGEST_ERROR,
        required=False,
        help_text="Maximum relative error of a quantile.",
    )
    k = serializers.IntegerField(
        min_value=1,
        max_value=measures.MAX_TOP,
        required=False,
        help_text="How many of the most frequent values to keep.",
    )

    def validate(self, attrs: dict[str, object]) -> dict[str, object]:
        if "op" not in attrs:
            raise serializers.ValidationError({"op": _required()})
        wrong = measures.invalid_member(dict(attrs))  # type: ignore[arg-type]
        if wrong is not None:
            raise serializers.ValidationError({wrong[0]: wrong[1]})
        return dict(measures.completed(dict(attrs)))  # type: ignore[arg-type]


@extend_schema_field({"type": "object"})
class FilterField(serializers.JSONField):
    """A filter, which is parsed elsewhere."""

    def run_validation(self, data: object = serializers.empty) -> object:
        value = super().run_validation(data)
        if value is not None and not isinstance(value, dict):
            raise serializers.ValidationError("A filter must be an object.", "invalid")
        return value


class SourceSerializer(BodySerializer):
    """The collection that a view is over."""

    collection = NameField()
    filter = FilterField(required=False, allow_null=True, default=None)

    def validate(self, attrs: dict[str, object]) -> dict[str, object]:
        return _complete(attrs, "collection")


class AggregateChange(BodySerializer):
    """The fields that can be changed. The rows are recomputed from the retained data."""

    dimensions = serializers.ListField(
        child=EventField(),
        max_length=MAX_DIMENSIONS,
        default=list,
        help_text="The fields whose values identify a row.",
    )
    time = TimeSerializer(allow_null=True, default=None)
    measures = serializers.DictField(child=MeasureSerializer(), allow_empty=False)
    rollups = serializers.ListField(
        child=serializers.ListField(child=EventField()),
        max_length=MAX_ROLLUPS,
        default=list,
        help_text="Further sets of dimensions for which rows are kept.",
    )
    retention = SpanField(
        most_s=MAX_RETENTION_S,
        allow_null=True,
        default=None,
        help_text="How long buckets are kept, such as 90d; null: forever.",
    )

    def validate_measures(self, measures: dict[str, JsonObject]) -> dict[str, JsonObject]:
        if len(measures) > MAX_MEASURES:
            raise serializers.ValidationError(f"At most {MAX_MEASURES} measures.")
        for name in measures:
            MeasureField().run_validation(name)
            if name == RESERVED:
                raise serializers.ValidationError(
                    {name: "This name is reserved for a field of rows."}
                )
        return measures

    def validate_dimensions(self, dimensions: list[str]) -> list[str]:
        if len(set(dimensions)) < len(dimensions):
            raise serializers.ValidationError("A dimension is named twice.")
        if RESERVED in dimensions:
            raise serializers.ValidationError("This name is reserved for a field of rows.")
        return dimensions


class AggregateCreation(AggregateChange):
    """The fields of a new aggregate."""

    name = NameField()
    source = SourceSerializer(  # type: ignore[assignment]
        allow_null=True,
        default=None,
        help_text="Makes the aggregate a view over a collection's documents.",
    )


def _complete(attrs: dict[str, object], *names: str) -> dict[str, object]:
    missing = [name for name in names if name not in attrs]
    if missing:
        raise serializers.ValidationError({name: _required() for name in missing})
    return attrs


def _required() -> serializers.ErrorDetail:
    return serializers.ErrorDetail("This field is required.", "required")
