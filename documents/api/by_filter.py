"""Changes documents that match a filter. They are found in the order of their ids and changed in
batches, each in a separate transaction. A document that no longer matches when its turn comes is
not changed, nor is one that cannot be evaluated, which the response counts. A call that runs out of
time has changed some of them, and its counts report how many.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from data_plane.calls import Call
from data_plane.http import CallResponse
from data_plane.request_reader import (
    as_object,
    integer,
    parameters,
    read_body,
    refusing,
    required,
)
from documents.api.requests import (
    WRITE,
    claim,
    collection_name,
)
from documents.store import queries
from documents.store.notices import Notices
from documents.store.write import WriteCall
from documents.store.writer import write
from foundation.api.rendering import to_json
from foundation.errors import EvaluationFailed, NotFound, QueryTooExpensive
from foundation.refusals import as_api_error
from rillbase_native import Filter, Operation, Operations, UpdateOperators, Value, id_of

BATCH = 1_000
MAX_DOCUMENTS = 1_000_000
MAX_SECONDS = 25.0
_NOT_EVALUATED = frozenset({QueryTooExpensive.code, EvaluationFailed.code})


@dataclass(slots=True)
class ChangeCounts:
    """The counts of a call."""

    matched: int = 0
    changed: int = 0
    complete: bool = True
    notices: Notices = field(default_factory=Notices)

    def to_json(self) -> bytes:
        counts = {"matched": self.matched, "changed": self.changed, "complete": self.complete}
        return to_json(counts)[:-1] + self.notices.member() + b"}"


async def update(call: Call) -> CallResponse:
    """POST documents:update."""
    name = collection_name(call, WRITE)
    parameters(call)
    text = await read_body(call)
    body = as_object(text, ("filter", "update", "array_filters", "limit"))
    query_filter = _filter(body)
    with refusing():
        operators = UpdateOperators.parse(required(body, "update"), body.get("array_filters"))
    return await _change(
        call,
        name,
        text,
        body,
        query_filter,
        lambda identity: Operation.update_found(identity, operators, query_filter),
    )


async def delete(call: Call) -> CallResponse:
    """POST documents:delete."""
    name = collection_name(call, WRITE)
    parameters(call)
    text = await read_body(call)
    body = as_object(text, ("filter", "limit"))
    query_filter = _filter(body)
    return await _change(
        call,
        name,
        text,
        body,
        query_filter,
        lambda identity: Operation.delete_found(identity, query_filter),
    )


def _filter(body: Value) -> Filter:
    """A filter is required, so that omitting it does not change all documents."""
    with refusing():
        return Filter.parse(required(body, "filter"))


async def _change(
    call: Call,
    name: str,
    text: bytes,
    body: Value,
    query_filter: Filter,
    operation: Callable[[Value], Operation],
) -> CallResponse:
    limit = integer(
        body.get("limit"), "limit", minimum=1, maximum=MAX_DOCUMENTS, default=MAX_DOCUMENTS
    )
    idempotency_claim = claim(call, text)
    if idempotency_claim is not None:
        before = await write(WriteCall(call.tenant.id, claim=idempotency_claim))
        if before.answer is not None:
            return before.answer
    counts = await _run(call, name, query_filter, limit, operation)
    answer = CallResponse(200, counts.to_json())
    if idempotency_claim is not None:
        await write(WriteCall(call.tenant.id, claim=idempotency_claim, answer=lambda _: answer))
    return answer


async def _run(
    call: Call, name: str, query_filter: Filter, limit: int, operation: Callable[[Value], Operation]
) -> ChangeCounts:
    counts, after = ChangeCounts(), b""
    deadline = time.monotonic() + MAX_SECONDS
    while counts.matched < limit:
        size = min(BATCH, limit - counts.matched)
        matches = await queries.find(
            call.tenant.id, name, query_filter, call.principal, limit=size, after=after
        )
        counts.notices.include(matches.notices)
        if not matches.bodies:
            break
        counts.matched += len(matches.bodies)
        operations = [operation(id_of(body)) for body in matches.bodies]
        counts.changed += await _batch(call, name, operations, counts.notices)
        if matches.last is None:
            break
        after = matches.last
        if time.monotonic() > deadline:
            counts.complete = False
            break
    return counts


async def _batch(call: Call, name: str, operations: list[Operation], notices: Notices) -> int:
    """Change the documents of a batch, and return how many were changed.

    Documents that cannot be evaluated are skipped with a notice, as in queries. The first that
    cannot be changed for another reason ends the call.
    """
    written = await write(
        WriteCall(
            call.tenant.id, name, Operations(operations), atomic=False, principal=call.principal
        )
    )
    refusals = written.outcomes.refusals()
    left_out = Notices()
    for _, refused in refusals:
        if refused.code in _NOT_EVALUATED:
            left_out.add((1, refused.detail))
        elif refused.code != NotFound.code:
            raise as_api_error(refused)
    left_out.log(call.tenant.id, name)
    notices.include(left_out)
    return len(operations) - len(refusals)
