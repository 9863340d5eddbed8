"""Schema and access rules as a collection stores them: text that preserves exactly what was sent.
The order of members and the types of numbers are significant, and a conversion to Python values
would lose them. So the native reader takes them from the bytes of the body, the code that will
evaluate them checks them, and they are stored as canonical Extended JSON.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from documents.collections.field_names import clashes
from foundation.errors import FieldProblem, InvalidFilter, InvalidSchema
from foundation.refusals import as_api_error
from rillbase_native import Definition, QueryError, Rule, Value

#: Operators that rank documents; a rule only allows or denies.
_RANKING = frozenset({"$near", "$nearSphere", "$text"})


@dataclass(frozen=True, slots=True)
class Declarations:
    """The declarations of a body; a missing member is absent."""

    names: frozenset[str]
    schema: str | None
    access_rules: str


def read_declarations(body: bytes) -> Declarations:
    """Check schema and rules of a validated body, or raise the error."""
    try:
        value = Value.parse(body)
    except QueryError as error:
        raise as_api_error(error) from None
    return Declarations(
        names=frozenset(value.names()),
        schema=_schema(value.get("schema")),
        access_rules=_rules(value.get("access_rules")),
    )


def _schema(schema: Value | None) -> str | None:
    if schema is None or schema.is_null:
        return None
    try:
        Definition(schema, [])
    except QueryError as error:
        raise as_api_error(error, "/schema") from None
    text = schema.ejson(canonical=True).decode()
    problems = [
        FieldProblem(pointer, "invalid_schema", f"{which} would have the same name in GraphQL.")
        for pointer, which in clashes(json.loads(text), "/schema")
    ]
    if problems:
        raise InvalidSchema(problems[0].detail, errors=problems)
    return text


def _rules(rules: Value | None) -> str:
    if rules is None:
        return "{}"
    for action in rules.names():
        rule = rules.get(action)
        if rule is not None:
            _check_rule(rule, f"/access_rules/{action}")
    return rules.ejson(canonical=True).decode()


def _check_rule(rule: Value, pointer: str) -> None:
    try:
        Rule.parse(rule, pointer=pointer)
    except QueryError as error:
        raise as_api_error(error) from None
    ranking = _find_ranking(rule, pointer)
    if ranking is not None:
        detail = "This operator is not allowed in an access rule, because it ranks documents."
        raise InvalidFilter(detail, errors=[FieldProblem(ranking, "invalid_filter", detail)])


def _find_ranking(value: Value, pointer: str) -> str | None:
    """Return the position of a ranking operator, if there is one."""
    if value.kind == "object":
        members = [(name, value.get(name)) for name in value.names()]
    elif value.kind == "array":
        members = [(str(number), item) for number, item in enumerate(value.items())]
    else:
        return None
    for name, inner in members:
        location = f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}"
        if name in _RANKING:
            return location
        ranking = None if inner is None else _find_ranking(inner, location)
        if ranking is not None:
            return ranking
    return None
