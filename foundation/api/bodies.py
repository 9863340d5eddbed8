"""Request bodies: strict JSON in, typed values out, unknown fields rejected."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO

from rest_framework import serializers
from rest_framework.parsers import BaseParser

from foundation.errors import FieldProblem, InvalidBody
from foundation.json_body import parse_json_body
from foundation.json_types import JsonObject, JsonValue


class StrictJsonParser(BaseParser):
    """Decode a body with the native reader: bad UTF-8, NUL, duplicate keys and the like are
    rejected.
    """

    media_type = "application/json"

    def parse(  # type: ignore[override]
        self,
        stream: IO[bytes],
        media_type: str | None = None,
        parser_context: Mapping[str, object] | None = None,
    ) -> JsonValue:
        body = stream.read()
        return parse_json_body(body) if body.strip() else {}


class BodySerializer(serializers.Serializer[object]):
    """Base of all request bodies: a field that is not declared is an error."""

    def to_internal_value(self, data: object) -> object:
        if isinstance(data, dict):
            unknown = sorted(set(data) - set(self.fields))
            if unknown:
                raise serializers.ValidationError(
                    {
                        name: serializers.ErrorDetail("Unknown field.", "unknown_field")
                        for name in unknown
                    }
                )
        return super().to_internal_value(data)


def read_body(body: type[BodySerializer], data: object, *, partial: bool = False) -> JsonObject:
    """Validate a decoded body, or raise `InvalidBody` naming every offending place."""
    if not isinstance(data, dict):
        raise InvalidBody("The body must be a JSON object.")
    form = body(data=data, partial=partial)
    if not form.is_valid():
        raise InvalidBody(errors=field_problems(form.errors))
    values: JsonObject = form.validated_data
    return values


def field_problems(errors: object, pointer: str = "") -> list[FieldProblem]:
    """Flatten the framework's nested errors into a list with JSON pointers."""
    if isinstance(errors, Mapping):
        return [
            problem
            for name, inner in errors.items()
            for problem in field_problems(inner, _join(pointer, str(name)))
        ]
    if isinstance(errors, list):
        problems: list[FieldProblem] = []
        for position, inner in enumerate(errors):
            if isinstance(inner, (Mapping, list)):
                problems += field_problems(inner, f"{pointer}/{position}")
            else:
                problems.append(_problem(pointer, inner))
        return problems
    return [_problem(pointer, errors)]


def _problem(pointer: str, detail: object) -> FieldProblem:
    return FieldProblem(pointer, str(getattr(detail, "code", "invalid")), str(detail))


def _join(pointer: str, name: str) -> str:
    if name == "non_field_errors":
        return pointer
    return f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}"
