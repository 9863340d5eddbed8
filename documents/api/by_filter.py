"""Changes documents that match a filter. They are found in the order of their ids and changed in
batches, each in a separate transaction. A document that no longer matches when its turn comes is
not changed, nor is one that cannot be evaluated, which the response counts. A call that runs out of
time has changed some of them, and its counts report how many.

With an idempotency key, each transaction records how far the call has got. A retry continues there,
so no document is changed twice.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

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
from documents.store.claims import RecordedStep, WriteClaim, find_recorded
from documents.store.group import NotOneTransaction
from documents.store.notices import Notices
from documents.store.write import WriteCall
from documents.store.writer import write
from foundation.api.rendering import to_json
from foundation.errors import ApiError, EvaluationFailed, NotFound, QueryTooExpensive
from foundation.refusals import as_api_error
from rillbase_native import (
    Filter,
    Operation,
    Operations,
    Outcomes,
    UpdateOperators,
    Value,
    id_key,
    id_of,
)

BATCH = 1_000
MAX_DOCUMENTS = 1_000_000
MAX_SECONDS = 25.0
_NOT_EVALUATED = frozenset({QueryTooExpensive.code, EvaluationFailed.code})


@dataclass(slots=True)
class ChangeCounts:
    """The counts of a call after some of its batches."""

    matched: int = 0
    changed: int = 0
    complete: bool = True
    notices: Notices = field(default_factory=Notices)
    #: The position after which the next documents are read.
    after: bytes = b""

    def to_json(self) -> bytes:
        counts = {"matched": self.matched, "changed": self.changed, "complete": self.complete}
        return to_json(counts)[:-1] + self.notices.member() + b"}"

    def progress(self) -> bytes:
        """Return what `of_progress` reads."""
        notices = [self.notices.not_evaluated, self.notices.detail]
        return to_json([self.after.hex(), self.matched, self.changed, *notices])

    @classmethod
    def of_progress(cls, progress: bytes) -> ChangeCounts:
        after, matched, changed, *notices = json.loads(progress)
        return cls(matched, changed, notices=Notices(*notices), after=bytes.fromhex(after))


class FilteredStep(NamedTuple):
    """The documents of a batch: the position after them, and whether they are the last."""

    after: bytes
    is_last: bool

    def recorded(self) -> bytes:
        return b"%d" % self.is_last + self.after

    @classmethod
    def of_recorded(cls, recorded: bytes) -> FilteredStep:
        return cls(recorded[1:], recorded[:1] == b"1")


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
    change = FilteredChange(call, name, query_filter, limit, operation)
    if (idempotency_claim := claim(call, text)) is not None:
        recorded = await find_recorded(idempotency_claim)
        response = None if recorded is None else recorded.response(idempotency_claim)
        if response is not None:
            return response
        change.resume(idempotency_claim, None if recorded is None else recorded.progress)
    return await change.run()


class FilteredChange:
    """A change by filter that is running."""

    def __init__(
        self,
        call: Call,
        name: str,
        query_filter: Filter,
        limit: int,
        operation: Callable[[Value], Operation],
    ) -> None:
        self._call = call
        self._name = name
        self._filter = query_filter
        self._limit = limit
        self._operation = operation
        self._counts = ChangeCounts()
        self._claim: WriteClaim | None = None
        #: What is recorded under the idempotency key.
        self._recorded: bytes | None = None

    def resume(self, idempotency_claim: WriteClaim, recorded: bytes | None) -> None:
        """Record the progress under a key, and continue from what is recorded there."""
        self._claim = idempotency_claim
        self._recorded = recorded
        if recorded is not None:
            self._counts = ChangeCounts.of_progress(recorded)

    async def run(self) -> CallResponse:
        deadline = time.monotonic() + MAX_SECONDS
        response = await self._batch()
        while response is None:
            if time.monotonic() > deadline:
                self._counts.complete = False
                response = await self._end()
            else:
                response = await self._batch()
        return response

    async def _batch(self) -> CallResponse | None:
        """Change the next documents. Return the response if they are the last."""
        counts = self._counts
        matches = await queries.find(
            self._call.tenant.id,
            self._name,
            self._filter,
            self._call.principal,
            limit=min(BATCH, self._limit - counts.matched),
            after=counts.after,
        )
        counts.notices.include(matches.notices)
        if not matches.bodies:
            return await self._end()
        is_last = matches.last is None or counts.matched + len(matches.bodies) >= self._limit
        identities = [id_of(body) for body in matches.bodies]
        return await self._change(identities, matches.last or b"", is_last=is_last)

    async def _end(self) -> CallResponse | None:
        """Return the response, and record it. None: an earlier call has changed more documents."""
        if self._claim is None:
            return self._response(self._counts)
        return await self._change([], b"", is_last=True)

    async def _change(
        self, identities: Sequence[Value], after: bytes, *, is_last: bool
    ) -> CallResponse | None:
        """Change these documents. `after`: the position after which the next ones are read."""

        def record(outcomes: Outcomes, step: bytes) -> RecordedStep:
            read = FilteredStep.of_recorded(step)
            counts, error = self._count(outcomes, read.after)
            if error is not None:
                return error if counts.changed else None
            return self._response(counts) if read.is_last else counts.progress()

        call = WriteCall(
            self._call.tenant.id,
            self._name,
            Operations([self._operation(identity) for identity in identities]),
            atomic=False,
            principal=self._call.principal,
            claim=self._claim,
            record=None if self._claim is None else record,
            after=self._recorded,
            step=FilteredStep(after, is_last).recorded(),
        )
        try:
            written = await write(call)
        except NotOneTransaction:
            half = identities[: len(identities) // 2]
            response = await self._change(half, id_key(half[-1]), is_last=False)
            others = identities[len(half) :]
            return response or await self._change(others, after, is_last=is_last)
        if written.answer is not None:
            return written.answer
        before = self._counts.notices.not_evaluated
        read = FilteredStep.of_recorded(written.step)
        self._counts, error = self._count(written.outcomes, read.after)
        notices = self._counts.notices
        replace(notices, not_evaluated=notices.not_evaluated - before).log(
            self._call.tenant.id, self._name
        )
        if error is not None:
            raise error
        self._recorded = self._counts.progress()
        return self._response(self._counts) if read.is_last else None

    def _count(self, outcomes: Outcomes, after: bytes) -> tuple[ChangeCounts, ApiError | None]:
        """Return the counts after a batch, and the error that ends the call.

        Documents that cannot be evaluated are skipped with a notice, as in queries. The first that
        cannot be changed for another reason ends the call.
        """
        before, refusals = self._counts, outcomes.refusals()
        notices, error = replace(before.notices), None
        for _, refused in refusals:
            if refused.code in _NOT_EVALUATED:
                notices.add((1, refused.detail))
            elif refused.code != NotFound.code:
                error = error or as_api_error(refused)
        counts = ChangeCounts(
            before.matched + len(outcomes),
            before.changed + len(outcomes) - len(refusals),
            before.complete,
            notices,
            after,
        )
        return counts, error

    @staticmethod
    def _response(counts: ChangeCounts) -> CallResponse:
        return CallResponse(200, counts.to_json())
