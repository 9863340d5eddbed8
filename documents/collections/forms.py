"""Request bodies for collections. Only the outer form of schema and access rules is checked here;
`declarations` reads them from the bytes of the body.
"""

from __future__ import annotations

import re

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from documents.backend import Backend
from documents.collections.indexes import MAX_INDEX_FIELDS, MAX_INDEXES
from documents.index_fields import SPATIAL_ORDERS, FieldOrder
from documents.technique import DECLARED_TECHNIQUES, DeclaredTechnique
from foundation.api.bodies import BodySerializer
from storage_engine.node.admin import is_configured
from tenants.api.forms import NameField, PatternField

MAX_TTL_S = 100 * 366 * 24 * 3600
_MAX_PATH_CHARS = 500
_PAIR = 2

_RULE = {"oneOf": [{"type": "boolean"}, {"type": "object"}]}


class PathField(PatternField):
    """A path to a field of documents."""

    pattern = re.compile(
        rf"(?=.{{1,{_MAX_PATH_CHARS}}}\Z)[^$.\x00][^.\x00]*(\.[^$.\x00][^.\x00]*)*"
    )
    complaint = (
        f"1 to {_MAX_PATH_CHARS} characters: names joined by dots, none of them empty or "
        "starting with $."
    )


@extend_schema_field(
    {
        "type": "array",
        "prefixItems": [{"type": "string"}, {"enum": [1, -1, *SPATIAL_ORDERS]}],
        "minItems": 2,
        "maxItems": 2,
    }
)
class IndexPartField(serializers.Field[tuple[str, FieldOrder], object, list[object], object]):
    """A path and a direction, or a path and a spatial order."""

    def to_internal_value(self, data: object) -> tuple[str, FieldOrder]:
        if not isinstance(data, list) or len(data) != _PAIR:
            raise serializers.ValidationError(
                'A field of an index has the form ["path", 1].', "invalid"
            )
        path, order = data
        is_direction = type(order) is int and order in (1, -1)
        if not is_direction and not (isinstance(order, str) and order in SPATIAL_ORDERS):
            raise serializers.ValidationError(
                'The order must be 1, -1, "2dsphere" or "2d".', "invalid"
            )
        return str(PathField().run_validation(path)), order

    def to_representation(self, value: object) -> list[object]:
        return list(value) if isinstance(value, (list, tuple)) else []


@extend_schema_field(_RULE)
class RuleField(serializers.JSONField):
    """A filter, true or false."""

    def run_validation(self, data: object = serializers.empty) -> object:
        rule = super().run_validation(data)
        if not isinstance(rule, (bool, dict)):
            raise serializers.ValidationError("A rule must be a filter, true or false.", "invalid")
        return rule


@extend_schema_field({"type": "object"})
class SchemaField(serializers.JSONField):
    """A JSON Schema."""

    def run_validation(self, data: object = serializers.empty) -> object:
        schema = super().run_validation(data)
        if schema is not None and not isinstance(schema, dict):
            raise serializers.ValidationError("A JSON Schema must be an object.", "invalid")
        return schema


class AccessRules(BodySerializer):
    """What end users and anonymous callers may do. A missing rule is false."""

    read = RuleField(required=False)
    create = RuleField(required=False)  # type: ignore[assignment]
    update = RuleField(required=False)  # type: ignore[assignment]
    delete = RuleField(required=False)


class Ttl(BodySerializer):
    """When documents expire: a period after the date in one of their fields."""

    field = PathField()
    after_s = serializers.IntegerField(min_value=0, max_value=MAX_TTL_S)

    def validate(self, attrs: dict[str, object]) -> dict[str, object]:
        return _complete(self, attrs, "field", "after_s")


class DeclaredIndex(BodySerializer):
    """An index over one or more fields."""

    name = NameField()
    fields = serializers.ListField(  # type: ignore[assignment]
        child=IndexPartField(),
        min_length=1,
        max_length=MAX_INDEX_FIELDS,
        help_text="Paths with their directions, 1 or -1; or one path with `2dsphere` or `2d`, for "
        "queries by geometry.",
    )
    unique = serializers.BooleanField(default=False)
    technique = serializers.ChoiceField(
        DECLARED_TECHNIQUES,
        default=DeclaredTechnique.AUTO,
        help_text="How its entries are stored; `auto`: Rillbase chooses, and chooses again if the "
        "index is used in another way. Only native collections have `lazy`, `eager` and `embedded` "
        "indexes, which yield the documents of a value that were changed last.",
    )

    def validate(self, attrs: dict[str, object]) -> dict[str, object]:
        return _complete(self, attrs, "name", "fields")


def _complete(form: BodySerializer, attrs: dict[str, object], *names: str) -> dict[str, object]:
    """Require mandatory fields. A change may omit fields, but not nested ones."""
    missing = [name for name in names if name not in attrs]
    if missing:
        required = form.error_messages["required"]
        raise serializers.ValidationError(
            {name: serializers.ErrorDetail(str(required), "required") for name in missing}
        )
    return attrs


class CollectionChange(BodySerializer):
    """The fields of a collection that can be changed.

    Each replaces the previous value as a whole.
    """

    schema = SchemaField(
        allow_null=True, default=None, help_text="JSON Schema for every document; null: no schema."
    )
    access_rules = AccessRules(default=dict)
    indexes = serializers.ListField(
        child=DeclaredIndex(),
        max_length=MAX_INDEXES,
        default=list,
        help_text="All indexes, by name.",
    )
    ttl = Ttl(allow_null=True, default=None, help_text="Null: documents do not expire.")
    backend = serializers.ChoiceField(
        list(Backend),
        default=Backend.POSTGRES,
        help_text="Where documents are stored: in PostgreSQL, or in the storage node (`native`). A "
        "collection whose backend is changed moves while it is read and written.",
    )

    def validate_backend(self, backend: str) -> str:
        if backend == Backend.NATIVE and not is_configured():
            raise serializers.ValidationError(
                "This installation has no storage node.", "not_available"
            )
        return backend


class CollectionCreation(CollectionChange):
    """The fields of a new collection."""

    name = NameField()
