"""`Idempotency-Key` on the hot path: claimed, looked up and recorded in the writes' transaction.

The rules are those of `foundation.api.idempotency`, and so are the digests and the table; here the
statements travel with those of the write.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from data_plane.http import CallResponse
from foundation.api.idempotency import REPLAYED_HEADER
from foundation.errors import ApiError, IdempotencyInProgress, IdempotencyMismatch
from foundation.ids import uuid7
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
_KEPT_HEADERS = ("ETag", "Location")


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


def look_up(claims: list[WriteClaim]) -> list[Step]:
    """Lock the keys, then read what was recorded under them."""
    if not claims:
        return []
    return [
        (_LOCK, (int8s([claim.lock_number for claim in claims]),)),
        (_FIND, (byteas([claim.key_hash for claim in claims]),)),
    ]


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


def in_progress() -> ApiError:
    return IdempotencyInProgress(headers={"Retry-After": "1"})


def _replay(claim: WriteClaim, recorded: StatementResult, row: int) -> CallResponse | ApiError:
    if recorded.bytes(row, 1) != claim.request_hash:
        return IdempotencyMismatch(
            "The idempotency key was already used with a different body or different parameters."
        )
    headers = {str(k): str(v) for k, v in json.loads(recorded.text(row, 3)).items()}
    return CallResponse(
        recorded.integer(row, 2), recorded.bytes(row, 4), {**headers, REPLAYED_HEADER: "true"}
    )


def records(answered: Iterable[tuple[WriteClaim, CallResponse]]) -> list[Step]:
    """Record responses together with their changes. Errors are not recorded."""
    steps: list[Step] = []
    for claim, answer in answered:
        if answer.status >= 400 or not isinstance(answer.body, bytes):  # noqa: PLR2004 -- errors
            continue
        headers = {name: answer.headers[name] for name in _KEPT_HEADERS if name in answer.headers}
        steps.append(
            (
                _RECORD,
                (
                    uuid7().bytes,
                    claim.tenant_id.bytes,
                    None if claim.user_id is None else claim.user_id.bytes,
                    claim.key_hash,
                    claim.request_hash,
                    int2(answer.status),
                    json.dumps(headers).encode(),
                    answer.body,
                ),
            )
        )
    return steps
