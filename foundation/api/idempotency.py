"""`Idempotency-Key`: a mutating call takes effect once, however often the client retries it.

The response is recorded in the same transaction as the change, so either both exist or neither.
"Still running" is an advisory lock of that transaction, which is released however the transaction
ends. Errors are not recorded: nothing has changed, so the call can run again. Secrets in a
response are replaced by null before it is recorded. The request is kept as a keyed hash: with a
plain one, a reader of the table could guess passwords as fast as SHA-256 can be computed.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from django.db import connections
from django.http import HttpRequest
from rest_framework.response import Response

from foundation.api.rendering import to_json
from foundation.environment import environment
from foundation.errors import (
    FieldProblem,
    IdempotencyInProgress,
    IdempotencyMismatch,
    InvalidParameter,
)
from foundation.json_types import JsonValue
from foundation.models import IdempotencyRecord

HEADER = "Idempotency-Key"
REPLAYED_HEADER = "Idempotency-Replayed"
MAX_KEY_CHARS = 200
MUTATING = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_KEPT_HEADERS = ("ETag", "Location")


@dataclass(frozen=True, slots=True)
class IdempotencyScope:
    """The owner of a key: records are private to a principal in one tenant."""

    actor: str
    tenant_id: UUID | None
    user_id: UUID | None
    using: str


def once(
    request: HttpRequest,
    caller: IdempotencyScope,
    secret_fields: tuple[str, ...],
    run: Callable[[], Response],
) -> Response:
    """Run a mutating call, or repeat its recorded response."""
    key = request.headers.get(HEADER)
    if key is None or request.method not in MUTATING:
        return run()
    check_form(key)
    tenant = str(caller.tenant_id or "")
    key_hash = digest(tenant, caller.actor, request.method, request.path, key)
    request_hash = digest(request.META.get("QUERY_STRING", ""), request.body)
    _lock_or_refuse(key_hash, caller.using)
    record = IdempotencyRecord.objects.using(caller.using).filter(key_hash=key_hash).first()
    if record is not None:
        return _replay(record, request_hash)
    response = run()
    if response.status_code < 400:  # noqa: PLR2004 -- the start of HTTP's error range
        _remember(response, caller, key_hash, request_hash, secret_fields)
    return response


def check_form(key: str) -> None:
    """Raise unless the key has an acceptable form."""
    if not 1 <= len(key) <= MAX_KEY_CHARS or not key.isascii() or not key.isprintable():
        problem = FieldProblem(HEADER, "invalid", f"1 to {MAX_KEY_CHARS} printable characters.")
        raise InvalidParameter(errors=[problem])


def digest(*parts: str | bytes | None) -> bytes:
    """Return a keyed hash of the parts, each with its length, so it is unambiguous."""
    secret = environment().rillbase_secret_key.get_secret_value().encode()
    hashed = hmac.new(secret, b"idempotency:", hashlib.sha256)
    for part in parts:
        raw = part if isinstance(part, bytes) else (part or "").encode()
        hashed.update(len(raw).to_bytes(8, "big") + raw)
    return hashed.digest()


def _lock_or_refuse(key_hash: bytes, using: str) -> None:
    number = int.from_bytes(key_hash[:8], "big", signed=True)
    with connections[using].cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", (number,))
        row = cursor.fetchone()
    if not (row and row[0]):
        raise IdempotencyInProgress(headers={"Retry-After": "1"})


def _replay(record: IdempotencyRecord, request_hash: bytes) -> Response:
    if bytes(record.request_hash) != request_hash:
        raise IdempotencyMismatch(
            "The idempotency key was already used with a different body or different parameters."
        )
    body = bytes(record.body)
    headers = {**record.headers, REPLAYED_HEADER: "true"}
    return Response(json.loads(body) if body else None, status=record.status, headers=headers)


def _remember(
    response: Response,
    caller: IdempotencyScope,
    key_hash: bytes,
    request_hash: bytes,
    secret_fields: tuple[str, ...],
) -> None:
    body = b"" if response.data is None else to_json(_without_secrets(response.data, secret_fields))
    IdempotencyRecord.objects.using(caller.using).create(
        tenant_id=caller.tenant_id,
        user_id=caller.user_id,
        key_hash=key_hash,
        request_hash=request_hash,
        status=response.status_code,
        headers={h: response.headers[h] for h in _KEPT_HEADERS if h in response.headers},
        body=body,
    )


def _without_secrets(value: JsonValue, names: tuple[str, ...]) -> JsonValue:
    if isinstance(value, dict):
        return {k: None if k in names else _without_secrets(v, names) for k, v in value.items()}
    if isinstance(value, list):
        return [_without_secrets(item, names) for item in value]
    return value
