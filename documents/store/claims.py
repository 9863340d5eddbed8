"""`Idempotency-Key` on the hot path: claimed, looked up and recorded in the writes' transaction.

The rules are those of `foundation.api.idempotency`, and so are the digests and the table; here the
statements travel with those of the write.

A call that takes several transactions records with each of them how far it has got
(`CallProgress`), and each requires what the previous one has recorded. Of several calls with one
key, one continues and the others are rejected as still running; after a crash, a retry continues.
Such a call also records an error that ends it after it has changed something.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from data_plane.http import CallResponse
from documents.store.database import pool, scope
from foundation.api.idempotency import REPLAYED_HEADER
from foundation.api.rendering import to_json
from foundation.errors import (
    CATALOGUE,
    ApiError,
    FieldProblem,
    IdempotencyInProgress,
    IdempotencyMismatch,
)
from foundation.ids import uuid7
from foundation.json_types import JsonObject
from foundation.postgres import Statement, StatementResult
from foundation.postgres.arrays import byteas, int8s
from foundation.postgres.session import Oid, Step, int2

_LOCK = Statement(
    "SELECT pg_try_advisory_xact_lock(number) FROM unnest($1::int8[]) AS number",
    (Oid.INT8_ARRAY,),
)
_FIND = Statement(
    "SELECT key_hash, request_hash, status, headers::text, body "
    "FROM foundation_idempotencyrecord WHERE key_hash = ANY($1)",
    (Oid.BYTEA_ARRAY,),
)
_RECORD = Statement(
    "INSERT INTO foundation_idempotencyrecord "
    "(id, tenant_id, user_id, key_hash, request_hash, status, headers, body, created_at) "
    "VALUES ($1, $2, $3, $4, $5, $6, $7::jsonb, $8, now())",
    (
        Oid.UUID,
        Oid.UUID,
        Oid.UUID,
        Oid.BYTEA,
        Oid.BYTEA,
        Oid.INT2,
        Oid.TEXT,
        Oid.BYTEA,
    ),
)
_FIND_PROGRESS = Statement(
    "SELECT key_hash, request_hash, state FROM foundation_callprogress WHERE key_hash = ANY($1)",
    (Oid.BYTEA_ARRAY,),
)
_ADD_PROGRESS = Statement(
    "INSERT INTO foundation_callprogress (key_hash, request_hash, tenant_id, state, created_at) "
    "VALUES ($1, $2, $3, $4, now())",
    (Oid.BYTEA, Oid.BYTEA, Oid.UUID, Oid.BYTEA),
)
_SET_PROGRESS = Statement(
    "UPDATE foundation_callprogress SET state = $2 WHERE key_hash = $1", (Oid.BYTEA, Oid.BYTEA)
)
_DELETE_PROGRESS = Statement(
    "DELETE FROM foundation_callprogress WHERE key_hash = $1", (Oid.BYTEA,)
)
_KEPT_HEADERS = ("ETag", "Location")
#: The start of HTTP's range of errors.
ERRORS_FROM = 400

#: What a transaction of a call records: its progress, its response, the error that ends it, or
#: nothing.
RecordedStep = bytes | CallResponse | ApiError | None


@dataclass(frozen=True, slots=True)
class WriteClaim:
    """An idempotency key that a call carries, and the hash of the request."""

    key_hash: bytes
    request_hash: bytes
    tenant_id: UUID
    user_id: UUID | None

    @property
    def lock_number(self) -> int:
        return int.from_bytes(self.key_hash[:8], "big", signed=True)


def look_up(claims: list[WriteClaim], *, with_progress: bool) -> list[Step]:
    """Lock the keys, then read what was recorded under them."""
    if not claims:
        return []
    key_hashes = byteas([claim.key_hash for claim in claims])
    steps: list[Step] = [
        (_LOCK, (int8s([claim.lock_number for claim in claims]),)),
        (_FIND, (key_hashes,)),
    ]
    return [*steps, (_FIND_PROGRESS, (key_hashes,))] if with_progress else steps


def settle(
    claims: list[WriteClaim], locked: StatementResult, recorded: StatementResult
) -> dict[bytes, CallResponse | ApiError]:
    """Return the outcome of a call before it runs: the recorded response, or why it may not run."""
    settled: dict[bytes, CallResponse | ApiError] = {}
    rows = {recorded.bytes(row, 0): row for row in range(recorded.rows)}
    for number, claim in enumerate(claims):
        if not locked.boolean(number, 0):
            settled[claim.key_hash] = in_progress()
        elif claim.key_hash in rows:
            settled[claim.key_hash] = _replay(claim, recorded, rows[claim.key_hash])
    return settled


def require_progress(
    settled: dict[bytes, CallResponse | ApiError],
    expected: dict[bytes, bytes | None],
    progress: StatementResult,
) -> None:
    """Reject calls whose recorded progress is not what their last transaction recorded: another
    call with the key has continued.
    """
    states = {progress.bytes(row, 0): progress.bytes(row, 2) for row in range(progress.rows)}
    for key_hash, state in expected.items():
        if states.get(key_hash) != state:
            settled.setdefault(key_hash, in_progress())


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """What is recorded under a key: the end of a call, or how far it has got."""

    request_hash: bytes
    end: CallResponse | ApiError | None
    progress: bytes | None

    def response(self, claim: WriteClaim) -> CallResponse | None:
        """Return the response, or raise the error, if this is the same call and it has ended."""
        if self.request_hash != claim.request_hash:
            raise mismatch()
        if isinstance(self.end, ApiError):
            raise self.end
        return self.end


async def find_recorded(claim: WriteClaim) -> RecordedCall | None:
    """Return what is recorded under a key, by this call or another."""
    async with pool().session(claim.tenant_id) as session:
        _, records, progress = await session.run(
            [
                scope(claim.tenant_id),
                (_FIND, (byteas([claim.key_hash]),)),
                (_FIND_PROGRESS, (byteas([claim.key_hash]),)),
            ]
        )
    if records.rows:
        return RecordedCall(records.bytes(0, 1), _end(records, 0), None)
    if progress.rows:
        return RecordedCall(progress.bytes(0, 1), None, progress.bytes(0, 2))
    return None


def in_progress() -> ApiError:
    return IdempotencyInProgress(headers={"Retry-After": "1"})


def mismatch() -> ApiError:
    return IdempotencyMismatch(
        "The idempotency key was already used with a different body or different parameters."
    )


def _replay(claim: WriteClaim, recorded: StatementResult, row: int) -> CallResponse | ApiError:
    if recorded.bytes(row, 1) != claim.request_hash:
        return mismatch()
    return _end(recorded, row)


def _end(recorded: StatementResult, row: int) -> CallResponse | ApiError:
    headers = {str(k): str(v) for k, v in json.loads(recorded.text(row, 3)).items()}
    headers[REPLAYED_HEADER] = "true"
    status, body = recorded.integer(row, 2), recorded.bytes(row, 4)
    if status >= ERRORS_FROM:
        return _error(json.loads(body), headers)
    return CallResponse(status, body, headers)


def _error(problem: JsonObject, headers: dict[str, str]) -> ApiError:
    fields: Any = problem.get("errors", ())
    return CATALOGUE[str(problem["code"])](
        str(problem.get("detail", "")),
        errors=[FieldProblem(**field) for field in fields],
        headers=headers,
    )


def records(claim: WriteClaim, recorded: RecordedStep, after: bytes | None = None) -> list[Step]:
    """Record what a transaction of a call has to record, together with its changes. `after` is the
    progress that it replaces.
    """
    match recorded:
        case bytes():
            if after is not None:
                return [(_SET_PROGRESS, (claim.key_hash, recorded))]
            row = (claim.key_hash, claim.request_hash, claim.tenant_id.bytes, recorded)
            return [(_ADD_PROGRESS, row)]
        case ApiError():
            step = _record(claim, recorded.status, {}, to_json(recorded.problem()))
        # A response that is an error was rendered without a change, and a stream is not kept.
        case CallResponse(body=bytes() as body, status=status) if status < ERRORS_FROM:
            headers = {
                name: recorded.headers[name] for name in _KEPT_HEADERS if name in recorded.headers
            }
            step = _record(claim, status, headers, body)
        case _:
            return []
    return [step] if after is None else [step, (_DELETE_PROGRESS, (claim.key_hash,))]


def _record(claim: WriteClaim, status: int, headers: dict[str, str], body: bytes) -> Step:
    return _RECORD, (
        uuid7().bytes,
        claim.tenant_id.bytes,
        None if claim.user_id is None else claim.user_id.bytes,
        claim.key_hash,
        claim.request_hash,
        int2(status),
        json.dumps(headers).encode(),
        body,
    )
