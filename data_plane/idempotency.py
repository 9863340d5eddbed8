"""`Idempotency-Key` for calls that the storage node executes: the first response is replayed.

The node executes the call first. Then the response is recorded, in one transaction with the call's
other rows. A second call with the key gets the first one's response; a subscription that the second
call created in the meantime is never read and expires.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from django.db import IntegrityError, connections

from data_plane.calls import Call
from data_plane.http import CallResponse
from foundation.api.idempotency import HEADER, REPLAYED_HEADER, check_form, digest
from foundation.errors import IdempotencyMismatch
from foundation.models import IdempotencyRecord
from foundation.scope import scoped


@dataclass(frozen=True, slots=True)
class IdempotencyClaim:
    """A key that a call carries, and the hash of the request."""

    key_hash: bytes
    request_hash: bytes
    tenant_id: UUID
    user_id: UUID | None


def claim_of(call: Call, body: bytes) -> IdempotencyClaim | None:
    """Return the key that a call carries."""
    key = call.head.headers.get(HEADER)
    if key is None:
        return None
    check_form(key)
    tenant, head = call.tenant.id, call.head
    return IdempotencyClaim(
        key_hash=digest(str(tenant), call.principal.actor, head.method, head.path, key),
        request_hash=digest(head.query_string, body),
        tenant_id=tenant,
        user_id=call.principal.user_id,
    )


async def recorded_response(claim: IdempotencyClaim | None) -> CallResponse | None:
    """Return the response that is recorded for the key."""
    return None if claim is None else await asyncio.to_thread(_recorded_response, claim)


async def settle(
    tenant_id: UUID,
    claim: IdempotencyClaim | None,
    answer: CallResponse,
    statements: Callable[[], None] | None,
) -> CallResponse:
    """Record a response and run the given statements in one transaction."""
    if claim is None and statements is None:
        return answer
    return await asyncio.to_thread(_settle, tenant_id, claim, answer, statements)


def _recorded_response(claim: IdempotencyClaim) -> CallResponse | None:
    try:
        with scoped(tenant_id=claim.tenant_id, user_id=claim.user_id):
            record = IdempotencyRecord.objects.filter(key_hash=claim.key_hash).first()
    finally:
        connections["default"].close()
    if record is None:
        return None
    if bytes(record.request_hash) != claim.request_hash:
        raise IdempotencyMismatch(
            "The idempotency key was already used with a different body or different parameters."
        )
    return CallResponse(record.status, bytes(record.body), {REPLAYED_HEADER: "true"})


def _settle(
    tenant_id: UUID,
    claim: IdempotencyClaim | None,
    answer: CallResponse,
    statements: Callable[[], None] | None,
) -> CallResponse:
    try:
        with scoped(tenant_id=tenant_id, user_id=None if claim is None else claim.user_id):
            if statements is not None:
                statements()
            if claim is not None:
                _record(claim, answer)
    except IntegrityError:
        first = None if claim is None else _recorded_response(claim)
        if first is None:
            raise
        return first
    finally:
        connections["default"].close()
    return answer


def _record(claim: IdempotencyClaim, answer: CallResponse) -> None:
    IdempotencyRecord.objects.create(
        tenant_id=claim.tenant_id,
        user_id=claim.user_id,
        key_hash=claim.key_hash,
        request_hash=claim.request_hash,
        status=answer.status,
        headers={},
        body=answer.body if isinstance(answer.body, bytes) else b"",
    )
