"""What the calls have in common: names, bodies, preconditions, idempotency keys, forms."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from documents.models.collection import NAME_PATTERN
from documents.refusals import as_api_error
from documents.store.claims import Claim
from foundation.api.idempotency import HEADER, check_form, digest
from foundation.api.preconditions import versions
from foundation.environment import environment
from foundation.errors import FieldProblem, InvalidBody, InvalidParameter, NotFound
from rillbase_native import Expected, JsonError, QueryError, Value, id_key, parse_id
from tenants.data_plane import Call

READ, WRITE = "documents:read", "documents:write"
EJSON_HEADER = "Rillbase-EJSON"

_NAME = re.compile(rf"{NAME_PATTERN}\Z")


@contextmanager
def refusing(prefix: str = "") -> Iterator[None]:
    """Raise what the native code refuses as an error of the API."""
    try:
        yield
    except QueryError as refused:
        raise as_api_error(refused, prefix) from None
    except JsonError as malformed:
        problem = FieldProblem(malformed.pointer, malformed.code, str(malformed))
        raise InvalidBody(str(malformed), errors=[problem]) from None


def collection_name(call: Call, scope: str) -> str:
    """Return the collection that the path names, if the caller may use it so."""
    name = call.parameters["collection"]
    if not _NAME.match(name):
        raise NotFound(f"There is no collection {name[:100]!r}.")
    call.require_collection_scope(scope, name)
    return name


def path_id(call: Call) -> tuple[Value, bytes]:
    """Return the `_id` that the path names, and its key."""
    with refusing():
        identity = parse_id(call.parameters["id"])
        return identity, id_key(identity)


async def read_body(call: Call, *media_types: str) -> bytes:
    call.body.require(*(media_types or ("application/json",)))
    return await call.body.read(environment().rillbase_body_max_bytes)


async def read_object(call: Call, allowed: Collection[str], *media_types: str) -> Value:
    """Return the body as an object that has no members but these."""
    return as_object(await read_body(call, *media_types), allowed)


def as_object(text: bytes, allowed: Collection[str]) -> Value:
    with refusing():
        value = Value.parse(text if text.strip() else b"{}")
    if value.kind != "object":
        raise InvalidBody("The body must be a JSON object.")
    unknown = [name for name in value.names() if name not in allowed]
    if unknown:
        raise InvalidBody(
            errors=[
                FieldProblem(f"/{name}", "unknown_field", "This field is not known.")
                for name in unknown
            ]
        )
    return value


def required(value: Value, name: str) -> Value:
    found = value.get(name)
    if found is None:
        raise InvalidBody(errors=[FieldProblem(f"/{name}", "required", "This field is required.")])
    return found


def integer(value: Value | None, name: str, *, least: int, most: int, otherwise: int) -> int:
    """Return a whole number within bounds."""
    if value is None or value.is_null:
        return otherwise
    try:
        number = value.integer()
    except TypeError:
        number = least - 1
    if not least <= number <= most:
        detail = f"A whole number from {least} to {most}."
        raise InvalidBody(errors=[FieldProblem(f"/{name}", "invalid", detail)])
    return number


def parameters(call: Call, *allowed: str) -> dict[str, str]:
    """Return the query's parameters, if there are no others than these."""
    for name in call.head.query:
        if name not in allowed:
            raise InvalidParameter(
                errors=[FieldProblem(name, "unknown_parameter", "This parameter is not known.")]
            )
    return call.head.query


def flag(text: str | None, name: str) -> bool:
    if text not in (None, "true", "false"):
        raise InvalidParameter(errors=[FieldProblem(name, "invalid", "true or false.")])
    return text == "true"


def canonical(call: Call) -> bool:
    """Tell whether the caller wants canonical Extended JSON."""
    wanted = call.head.headers.get(EJSON_HEADER)
    if wanted not in (None, "relaxed", "canonical"):
        raise InvalidParameter(f"{EJSON_HEADER} is relaxed or canonical.")
    return wanted == "canonical"


def expected(call: Call) -> Expected | None:
    """Return what `If-Match` and `If-None-Match` ask of the document."""
    match, none_match = (call.head.headers.get(h) for h in ("If-Match", "If-None-Match"))
    if none_match is not None:
        if none_match.strip() != "*":
            raise InvalidParameter("If-None-Match takes * on calls that change something.")
        return Expected(absent=True)
    if match is None:
        return None
    if match.strip() == "*":
        return Expected(present=True)
    return Expected(sorted(versions(match, "If-Match")))


def claim(call: Call, body: bytes) -> Claim | None:
    """Return the idempotency key that the call carries."""
    key = call.head.headers.get(HEADER)
    if key is None:
        return None
    check_form(key)
    tenant, head = call.tenant.id, call.head
    preconditions = "|".join(
        head.headers.get(name, "") for name in ("If-Match", "If-None-Match", "Content-Type")
    )
    return Claim(
        key_hash=digest(str(tenant), call.principal.actor, head.method, head.path, key),
        request_hash=digest(head.query_string, preconditions, body),
        tenant_id=tenant,
        user_id=call.principal.user_id,
    )
