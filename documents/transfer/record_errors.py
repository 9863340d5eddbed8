"""The errors of rejected records: the line, the invalid fields and their values."""

from __future__ import annotations

from documents.transfer.import_record import ImportRecord
from foundation.errors import ApiError, FieldProblem, InvalidDocument
from foundation.file_errors import received
from foundation.json_types import JsonObject
from rillbase_native import Value

#: The most fields that a detail names.
MAX_NAMED_FIELDS = 5
#: How a detail begins that names the accepted values.
_EXPECTATION = "expected "


def error_of(record: ImportRecord, error: ApiError) -> JsonObject:
    """Return the entry of a record in the list of errors."""
    column: JsonObject = {} if record.column is None else {"column": record.column}
    return {
        "line": record.line,
        **column,
        "code": error.code,
        "detail": _detail(record, error),
        "pointer": error.errors[0].pointer if error.errors else "",
    }


def _detail(record: ImportRecord, error: ApiError) -> str:
    detail = error.detail or error.title
    if not error.errors:
        return detail
    first, *_ = error.errors
    if first.detail != detail:
        return _violations(record, error)
    # A text that does not fit the type of its column is described with the name of the column.
    is_named = error.code == InvalidDocument.code and ": " in detail
    return detail if is_named else _named(first)


def _violations(record: ImportRecord, error: ApiError) -> str:
    """Return the fields that violate the collection's schema, with the values of the file."""
    document = record.read()
    texts = [
        _named(problem) + _value_text(document, problem)
        for problem in error.errors[:MAX_NAMED_FIELDS]
    ]
    others = len(error.errors) - len(texts)
    return "; ".join([*texts, f"and {others} more"] if others else texts)


def _named(problem: FieldProblem) -> str:
    path = ".".join(_names(problem.pointer))
    return f"{path}: {problem.detail}" if path else problem.detail


def _value_text(document: Value | None, problem: FieldProblem) -> str:
    value = _at(document, problem.pointer)
    if value is None or not problem.detail.startswith(_EXPECTATION):
        return ""
    text = value.text() if value.kind == "string" else value.ejson().decode()
    return f", {received(value.kind, text)}"


def _at(value: Value | None, pointer: str) -> Value | None:
    for name in _names(pointer):
        if value is not None and value.kind == "object":
            value = value.get(name)
        elif value is not None and value.kind == "array":
            items = value.items()
            value = items[int(name)] if name.isdecimal() and int(name) < len(items) else None
        else:
            return None
    return value


def _names(pointer: str) -> list[str]:
    return [name.replace("~1", "/").replace("~0", "~") for name in pointer.split("/")[1:]]
