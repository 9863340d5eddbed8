"""Many operations in one call, and transactions over several collections."""

from __future__ import annotations

from data_plane.calls import Call
from data_plane.http import CallResponse
from data_plane.request_reader import (
    canonical,
    parameters,
    read_body,
    refusing,
)
from documents.api.requests import (
    WRITE,
    claim,
    collection_name,
)
from documents.store.write import WriteCall
from documents.store.writer import write
from documents.transfer.formats import NDJSON
from foundation.api.rendering import to_json
from foundation.errors import InvalidBody
from foundation.refusals import as_api_error
from foundation.request_context import request_id
from rillbase_native import Operations, Outcomes

MAX_OPERATIONS = 10_000
MAX_TRANSACTION = 500


async def bulk(call: Call) -> CallResponse:
    """POST documents:bulk."""
    name = collection_name(call, WRITE)
    parameters(call)
    text = await read_body(call, "application/json", NDJSON)
    with refusing():
        operations, ordered = Operations.parse(
            text, ndjson=call.body.media_type == NDJSON, max_operations=MAX_OPERATIONS
        )
    return await _write(call, text, operations, name, atomic=ordered)


async def transact(call: Call) -> CallResponse:
    """POST /v1/transactions."""
    call.principal.require_scope(WRITE)
    parameters(call)
    text = await read_body(call)
    with refusing():
        operations, _ = Operations.parse(
            text, ndjson=False, max_operations=MAX_TRANSACTION, transaction=True
        )
    for name in operations.collections():
        call.require_collection_scope(WRITE, name)
    return await _write(call, text, operations, "", atomic=True)


async def _write(
    call: Call, text: bytes, operations: Operations, name: str, *, atomic: bool
) -> CallResponse:
    if not len(operations):
        raise InvalidBody("At least one operation is required.")
    form = canonical(call)
    written = await write(
        WriteCall(
            call.tenant.id,
            name,
            operations,
            atomic=atomic,
            principal=call.principal,
            claim=claim(call, text),
            answer=lambda outcomes: _answer(outcomes, form),
        )
    )
    if written.answer is None:
        raise AssertionError("a write that requests a response has one")
    return written.answer


def _answer(outcomes: Outcomes, form: bool) -> CallResponse:  # noqa: FBT001
    """Return the result of each operation, in order."""
    refusals = [
        to_json({"error": as_api_error(refused).problem(request_id.get())}).decode()
        for _, refused in outcomes.refusals()
    ]
    return CallResponse(200, b'{"results":%b}' % outcomes.results(refusals, canonical=form))
