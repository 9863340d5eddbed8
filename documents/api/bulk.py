"""Many operations in one call, and transactions over several collections."""

from __future__ import annotations

from collections.abc import Sequence

from documents.api.requests import (
    WRITE,
    canonical,
    claim,
    collection_name,
    parameters,
    read_body,
    refusing,
)
from documents.refusals import as_api_error
from documents.store.staging import Outcome
from documents.store.write import Line, Write
from documents.store.writer import write
from foundation.api.rendering import to_json
from foundation.errors import ApiError, InvalidBody
from foundation.http import Answer
from foundation.request_context import request_id
from rillbase_native import Operation, QueryError, parse_bulk
from tenants.data_plane import Call

NDJSON = "application/x-ndjson"
MAX_OPERATIONS = 10_000
MAX_TRANSACTION = 500


async def bulk(call: Call) -> Answer:
    """POST documents:bulk."""
    name = collection_name(call, WRITE)
    parameters(call)
    text = await read_body(call, "application/json", NDJSON)
    with refusing():
        operations, ordered = parse_bulk(
            text, ndjson=call.body.media_type == NDJSON, max_operations=MAX_OPERATIONS
        )
    lines = [Line(name, one) for one in operations if isinstance(one, Operation)]
    form = canonical(call)
    return await _write(call, text, operations, lines, atomic=ordered, form=form)


async def transact(call: Call) -> Answer:
    """POST /v1/transactions."""
    call.principal.require_scope(WRITE)
    parameters(call)
    text = await read_body(call)
    with refusing():
        operations, _ = parse_bulk(
            text, ndjson=False, max_operations=MAX_TRANSACTION, transaction=True
        )
    lines = []
    for operation in operations:
        if isinstance(operation, Operation) and operation.collection is not None:
            call.require_collection_scope(WRITE, operation.collection)
            lines.append(Line(operation.collection, operation))
    return await _write(call, text, operations, lines, atomic=True, form=canonical(call))


async def _write(
    call: Call,
    text: bytes,
    operations: Sequence[Operation | QueryError],
    lines: Sequence[Line],
    *,
    atomic: bool,
    form: bool,
) -> Answer:
    if not operations:
        raise InvalidBody("There are no operations.")
    written = await write(
        Write(
            call.tenant.id,
            lines,
            atomic=atomic,
            principal=call.principal,
            claim=claim(call, text),
            answer=lambda outcomes: _answer(operations, outcomes, form),
        )
    )
    if written.answer is None:
        raise AssertionError("a write with an answer has one")
    return written.answer


def _answer(
    operations: Sequence[Operation | QueryError],
    outcomes: Sequence[Outcome],
    form: bool,  # noqa: FBT001
) -> Answer:
    """Answer each operation in its place; those that could not be read were not tried."""
    tried = iter(outcomes)
    results = [
        _result(as_api_error(one) if isinstance(one, QueryError) else next(tried), form)
        for one in operations
    ]
    return Answer(200, b'{"results":[' + b",".join(results) + b"]}")


def _result(outcome: Outcome, form: bool) -> bytes:  # noqa: FBT001
    if isinstance(outcome, ApiError):
        return b'{"error":' + to_json(outcome.problem(request_id.get())) + b"}"
    identity = outcome.operation.id.ejson(canonical=form)
    return b'{"id":%b,"version":%d}' % (identity, outcome.version)
