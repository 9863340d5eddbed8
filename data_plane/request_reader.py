"""Reads requests of the data plane: strict objects, parameters, the form of the response."""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice

from data_plane.calls import Call
from foundation.environment import environment
from foundation.errors import MAX_PROBLEMS, FieldProblem, InvalidBody, InvalidParameter
from foundation.refusals import as_api_error
from rillbase_native import JsonError, QueryError, Value

EJSON_HEADER = "Rillbase-EJSON"
#: The same as a parameter of an address, and as a member of `hello`.
EJSON_PARAMETER = "ejson"


class NativeRefusals:
    """Raises errors of the native code as errors of the API. Every call uses it: as a generator it
    would take three times as long.
    """

    __slots__ = ("_prefix",)

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, QueryError):
            raise as_api_error(error, self._prefix) from None
        if isinstance(error, JsonError):
            problem = FieldProblem(error.pointer, error.code, str(error))
            raise InvalidBody(str(error), errors=[problem]) from None


def refusing(prefix: str = "") -> NativeRefusals:
    """Raise errors of the native code as errors of the API."""
    return NativeRefusals(prefix)


async def read_body(call: Call, *media_types: str, max_bytes: int | None = None) -> bytes:
    """Return the whole body, of at most the configured size and `max_bytes`."""
    call.body.require(*(media_types or ("application/json",)))
    configured = environment().rillbase_body_max_bytes
    return await call.body.read(min(configured, max_bytes or configured))


def as_object(text: bytes, allowed: Collection[str]) -> Value:
    with refusing():
        value = Value.parse_request(text if text.strip() else b"{}")
    if value.kind != "object":
        raise InvalidBody("The body must be a JSON object.")
    refuse_unknown(value, allowed)
    return value


def refuse_unknown(value: Value, allowed: Collection[str], prefix: str = "") -> None:
    """Raise `InvalidBody` for unknown members; it names as many as a response may."""
    unknown = (name for name in value.names() if name not in allowed)
    problems = [
        FieldProblem(f"{prefix}/{name}", "unknown_field", "Unknown field.")
        for name in islice(unknown, MAX_PROBLEMS)
    ]
    if problems:
        raise InvalidBody(errors=problems)


def required(value: Value, name: str) -> Value:
    member = value.get(name)
    if member is None:
        raise InvalidBody(errors=[FieldProblem(f"/{name}", "required", "This field is required.")])
    return member


def integer(value: Value | None, name: str, *, minimum: int, maximum: int, default: int) -> int:
    """Return a whole number within bounds."""
    if value is None or value.is_null:
        return default
    try:
        number = value.integer()
    except TypeError:
        number = minimum - 1
    if not minimum <= number <= maximum:
        detail = f"Expected an integer from {minimum} to {maximum}."
        raise InvalidBody(errors=[FieldProblem(f"/{name}", "invalid", detail)])
    return number


def parameters(call: Call, *allowed: str) -> dict[str, str]:
    """Return the query's parameters, if all of them are known."""
    for name in call.head.query:
        if name not in allowed:
            raise InvalidParameter(
                errors=[FieldProblem(name, "unknown_parameter", "Unknown parameter.")]
            )
    return call.head.query


def flag(text: str | None, name: str) -> bool:
    if text not in (None, "true", "false"):
        raise InvalidParameter(
            errors=[FieldProblem(name, "invalid", "Expected `true` or `false`.")]
        )
    return text == "true"


def canonical(call: Call) -> bool:
    """Return whether the caller wants canonical Extended JSON."""
    return is_canonical(call.head.headers.get(EJSON_HEADER), EJSON_HEADER)


def is_canonical(form: str | None, name: str) -> bool:
    """Return whether a form of Extended JSON is canonical; `name` is where it was given."""
    if form not in (None, "relaxed", "canonical"):
        raise InvalidParameter(f"{name} must be relaxed or canonical.")
    return form == "canonical"


def streams_canonical(call: Call, parameters: dict[str, str]) -> bool:
    """Take the form of a stream's documents from its parameters, or else from its headers.

    An EventSource sends no headers.
    """
    form = parameters.pop(EJSON_PARAMETER, None)
    return canonical(call) if form is None else is_canonical(form, EJSON_PARAMETER)
