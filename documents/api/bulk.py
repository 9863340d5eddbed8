"""Many operations in one call, and transactions over several collections."""

from __future__ import annotations

from dataclasses import replace

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
from documents.store.claims import WriteClaim, find_recorded
from documents.store.group import NotOneTransaction
from documents.store.write import WriteCall
from documents.store.writer import write
from documents.transfer.formats import NDJSON
from foundation.api.rendering import to_json
from foundation.errors import IdempotencyInProgress, InvalidBody
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
    request = WriteCall(
        call.tenant.id,
        name,
        operations,
        atomic=atomic,
        principal=call.principal,
        claim=claim(call, text),
        answer=lambda outcomes: _answer(outcomes, form),
    )
    if request.claim is not None and not atomic:
        return await DividedBulk(request, request.claim, form).run()
    written = await write(request)
    if written.answer is None:
        raise AssertionError("a write that requests a response has one")
    return written.answer


class DividedBulk:
    """Independent operations with an idempotency key. Usually they are one transaction. If their
    documents do not fit into memory together, they are divided, and each part records the results
    so far.
    """

    def __init__(self, request: WriteCall, idempotency_claim: WriteClaim, form: bool) -> None:  # noqa: FBT001
        self._request = request
        self._claim = idempotency_claim
        self._form = form
        self._done = 0
        #: Of the operations that are done, without the brackets of an array.
        self._results = b""
        #: What is recorded under the key.
        self._after: bytes | None = None

    async def run(self) -> CallResponse:
        count = len(self._request.operations)
        try:
            response = await self._write(0, count)
        except IdempotencyInProgress:
            recorded = await find_recorded(self._claim)
            if recorded is None or recorded.progress is None:
                raise
            recorded.response(self._claim)
            self._continue(recorded.progress)
            response = await self._write(self._done, count)
        if response is None:
            raise AssertionError("the last part has a response")
        return response

    def _continue(self, progress: bytes) -> None:
        self._after = progress
        done, _, self._results = progress.partition(b" ")
        self._done = int(done)

    async def _write(self, start: int, end: int) -> CallResponse | None:
        """Execute operations. Return the response after the last one."""
        request = self._request

        def record(outcomes: Outcomes, step: bytes) -> CallResponse | bytes:
            done = int(step)
            results = _results(outcomes, self._form)[1:-1]
            joined = b",".join(part for part in (self._results, results) if part)
            is_last = done == len(request.operations)
            return _response(b"[%b]" % joined) if is_last else b"%d %b" % (done, joined)

        operations = request.operations.part(start, end)
        part = replace(
            request,
            operations=operations,
            answer=None,
            record=record,
            after=self._after,
            step=b"%d" % end,
        )
        try:
            written = await write(part)
        except NotOneTransaction:
            middle = (start + end) // 2
            return await self._write(start, middle) or await self._write(middle, end)
        if written.answer is not None:
            return written.answer
        recorded = record(written.outcomes, written.step)
        if isinstance(recorded, CallResponse):
            return recorded
        self._continue(recorded)
        return None


def _answer(outcomes: Outcomes, form: bool) -> CallResponse:  # noqa: FBT001
    return _response(_results(outcomes, form))


def _response(results: bytes) -> CallResponse:
    return CallResponse(200, b'{"results":%b}' % results)


def _results(outcomes: Outcomes, form: bool) -> bytes:  # noqa: FBT001
    """Return the result of each operation, in order."""
    refusals = [
        to_json({"error": as_api_error(refused).problem(request_id.get())}).decode()
        for _, refused in outcomes.refusals()
    ]
    return outcomes.results(refusals, canonical=form)
