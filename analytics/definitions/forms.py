"""Request bodies of datasets."""

from __future__ import annotations

import re
from typing import TypeVar

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from analytics.table_definitions import KEY_TYPE_NAMES, TYPE_NAMES, IdKeyDefinition
from foundation.api.bodies import BodySerializer
from tenants.api.forms import NameField, PatternField

MAX_TABLES, MAX_VIEWS, MAX_KEY_COLUMNS, MAX_ID_KEYS = 32, 8, 8, 8
MIN_PARTS = 2
DEFAULT_RETENTION_S, MAX_RETENTION_S = 600, 30 * 86_400


class TableNameField(PatternField):
    """The name of a table or a view, valid in SQL without quotes."""

    #: Two names are joined by `__` to name a view's table in Iceberg.
    pattern = re.compile(r"(?=.{1,63}\Z)[a-z][a-z0-9]*(_[a-z0-9]+)*")
    complaint = "1 to 63 characters: a lower-case letter, then letters, digits and single _."


class ColumnField(PatternField):
    """The name of a column."""

    pattern = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,62}")
    complaint = "1 to 63 characters: a letter, then letters, digits and _."


class TypeField(PatternField):
    """The type of a column."""

    pattern = re.compile(rf"{'|'.join(TYPE_NAMES)}|id:[a-z][a-z0-9]*(_[a-z0-9]+)*")
    complaint = f"One of {', '.join(TYPE_NAMES)}, or `id:` and the name of an ID-key."


class _Key(serializers.ListField):
    """Columns, in the order of sorting."""

    def __init__(self, **kwargs: object) -> None:
        super().__init__(
            child=ColumnField(),
            min_length=1,
            max_length=MAX_KEY_COLUMNS,
            **kwargs,  # type: ignore[arg-type]
        )


_V = TypeVar("_V")


def _named_as_tables(entries: dict[str, _V]) -> dict[str, _V]:
    for name in entries:
        TableNameField().run_validation(name)
    return entries


class ViewSerializer(BodySerializer):
    """A secondary view: a subset of the columns, sorted differently."""

    key = _Key(help_text="The sort order. It must contain the columns of the table's key.")
    columns = serializers.ListField(
        child=ColumnField(),
        required=False,
        help_text="Columns of the view; by default all.",
    )


class TableSerializer(BodySerializer):
    """A table."""

    columns = serializers.DictField(
        child=TypeField(),
        allow_empty=False,
        help_text="The columns and their types, in order. The type `id:` with the name of an "
        "ID-key stores the ids of keys.",
    )
    key = _Key(
        help_text="The columns that identify a row; also the sort order of the primary view."
    )
    views = serializers.DictField(
        child=ViewSerializer(), default=dict, help_text="Secondary views."
    )

    def validate_columns(self, columns: dict[str, str]) -> dict[str, str]:
        for name in columns:
            ColumnField().run_validation(name)
        return columns

    def validate_views(self, views: dict[str, object]) -> dict[str, object]:
        if len(views) > MAX_VIEWS:
            raise serializers.ValidationError(f"At most {MAX_VIEWS} views.")
        return _named_as_tables(views)


@extend_schema_field(
    {
        "oneOf": [
            {"type": "string", "enum": list(KEY_TYPE_NAMES)},
            {
                "type": "object",
                "additionalProperties": {"type": "string", "enum": list(KEY_TYPE_NAMES)},
                "minProperties": MIN_PARTS,
                "maxProperties": MAX_KEY_COLUMNS,
            },
        ]
    }
)
class IdKeyField(serializers.Field[object, object, object, object]):
    """The type of an ID-key's keys: one type, or several parts by name."""

    def to_internal_value(self, data: object) -> object:
        kind = serializers.ChoiceField(KEY_TYPE_NAMES)
        if not isinstance(data, dict):
            return kind.run_validation(data)
        if not MIN_PARTS <= len(data) <= MAX_KEY_COLUMNS:
            raise serializers.ValidationError(
                f"A key must have {MIN_PARTS} to {MAX_KEY_COLUMNS} parts."
            )
        for name in data:
            ColumnField().run_validation(name)
        return {name: kind.run_validation(part) for name, part in data.items()}

    def to_representation(self, value: object) -> object:
        return value


class DatasetChange(BodySerializer):
    """The fields that can be changed. Tables and columns can only be added."""

    tables = serializers.DictField(
        child=TableSerializer(),
        allow_empty=False,
        help_text="All tables. New columns are added at the end of a table's columns.",
    )
    id_keys = serializers.DictField(
        child=IdKeyField(),
        default=dict,
        help_text="Keys that columns of all tables share, with their types: a type, or an object "
        "with the types of several parts. Each key is assigned an integer, 0, 1, 2, … in the "
        "order in which keys first occur.",
    )
    retention_s = serializers.IntegerField(
        min_value=1,
        max_value=MAX_RETENTION_S,
        default=DEFAULT_RETENTION_S,
        help_text="How long a state can be queried after a later one has replaced it.",
    )

    def validate_tables(self, tables: dict[str, object]) -> dict[str, object]:
        if len(tables) > MAX_TABLES:
            raise serializers.ValidationError(f"At most {MAX_TABLES} tables.")
        return _named_as_tables(tables)

    def validate_id_keys(self, id_keys: dict[str, IdKeyDefinition]) -> dict[str, IdKeyDefinition]:
        if len(id_keys) > MAX_ID_KEYS:
            raise serializers.ValidationError(f"At most {MAX_ID_KEYS} ID-keys.")
        return _named_as_tables(id_keys)


class DatasetCreation(DatasetChange):
    """The fields of a new dataset."""

    name = NameField()
