"""Writes to the storage node.

A write of a call with an idempotency key, and one that statements in PostgreSQL accompany, has a
name. The node stores its result under this name, in the batch of the changes. If the write is sent
again, the result is returned, and nothing is written. What accompanies it is recorded in PostgreSQL
afterwards: a process that ends between the two leaves a call that continues when it is repeated.
A write without operations returns what is stored under its name.
"""

from __future__ import annotations

from functools import partial
from hashlib import sha256
from typing import NamedTuple, cast

from documents.store import claims, facts
from documents.store.access import READ_ONLY, may_write, write_rules
from documents.store.attempt import WriteResponse
from documents.store.facts import CollectionFacts, ConcurrentDefinitionChange
from documents.store.group import conclude, run_in_halves
from documents.store.large_results import ResultDoesNotFit
from documents.store.node.definitions import TooLarge, call, node_name
from documents.store.outdated_calls import retried
from documents.store.write import WriteCall, WriteResult
from foundation.api.idempotency import REPLAYED_HEADER
from foundation.errors import ApiError, CollectionReadOnly
from foundation.refusals import as_api_error
from foundation.resp_pipeline import Argument
from rillbase_native import Operations, Outcomes, QueryError, encode_write
from storage_engine.node.client import client
from storage_engine.node.wire import CommandRejected
from tenants import usage

#: The most bytes of a request: a document of the largest size, and what comes with it.
MAX_REQUEST_BYTES = 16 * 1024 * 1024 + 512 * 1024
_TOO_LARGE = "The documents of the write are too large together."


class _NodeResult(NamedTuple):
    """What the node has written, now or when the write was sent before."""

    outcomes: Outcomes
    step: bytes
    is_replayed: bool


async def write_to_node(write: WriteCall) -> WriteResponse:
    """Write, and return the result or the error."""
    try:
        result = await retried(partial(_write, write))
    except TooLarge:
        return await run_in_halves(write, ResultDoesNotFit(_TOO_LARGE), write_to_node)
    except QueryError as error:
        return as_api_error(error)
    except ApiError as error:
        return error
    if not result.is_replayed:
        changed = len(result.outcomes) - len(result.outcomes.refusals())
        usage.count(write.tenant_id, usage.DOCUMENT_WRITES, changed)
    return await _respond(write, result)


async def recorded_in_node(write: WriteCall, collection: CollectionFacts) -> WriteResponse | None:
    """Return the result that the node has recorded of a call to a collection that was in it."""
    nothing = encode_write(Operations([]), [("", 0, None)], atomic=True, expected=None)
    place = (node_name(collection), collection.write_version)
    try:
        reply = await client().try_call(
            write.tenant_id, "RB.COL.WRITE", *_claim(write), nothing, *place
        )
    except CommandRejected as rejected:
        if rejected.code == "MISMATCH":
            return claims.mismatch()
        # There is no record, and the collection does not accept writes here any more.
        return None
    is_replayed, step, result = cast("tuple[int, bytes, bytes]", reply)
    if not is_replayed:
        return None
    return await _respond(write, _NodeResult(Outcomes.decode(result), step, is_replayed=True))


async def _respond(write: WriteCall, result: _NodeResult) -> WriteResponse:
    """Return the response of a write, and record it if it belongs to a longer call."""
    if write.record is not None or write.also is not None:
        return await conclude(write, result.outcomes, result.step)
    answer = write.answer(result.outcomes) if write.answer else None
    if answer is not None and result.is_replayed:
        answer.headers[REPLAYED_HEADER] = "true"
    return WriteResult(result.outcomes, answer, result.step)


async def _write(write: WriteCall) -> _NodeResult:
    names = write.involved_collections().items()
    collections = {name: await facts.find(write.tenant_id, used) for name, used in sorted(names)}
    if not all(collection.is_native for collection in collections.values()):
        raise ConcurrentDefinitionChange
    if not may_write(collections.values(), write.source_id):
        raise CollectionReadOnly(READ_ONLY)
    claim = _claim(write)
    command = ("RB.COL.WRITE", *claim, *_request(write, collections))
    reply = await call(list(collections.values()), *command, is_idempotent=bool(claim))
    if not claim:
        outcomes = Outcomes.decode(cast("bytes", reply), write.operations)
        return _NodeResult(outcomes, write.step, is_replayed=False)
    is_replayed, step, result = cast("tuple[int, bytes, bytes]", reply)
    return _NodeResult(Outcomes.decode(result, write.operations), step, bool(is_replayed))


def _request(write: WriteCall, collections: dict[str, CollectionFacts]) -> list[Argument]:
    """Return the operations, and the collections with the versions of their definitions."""
    positions: dict[bytes, int] = {}
    targets = []
    words = list[Argument]()
    for name, collection in collections.items():
        if collection.raw not in positions:
            positions[collection.raw] = len(positions)
            words += [node_name(collection), collection.write_version]
        rules = write_rules(collection, write.principal)
        targets.append((name, positions[collection.raw], rules))
    request = encode_write(write.operations, targets, atomic=write.atomic, expected=write.expected)
    if len(request) > MAX_REQUEST_BYTES:
        raise TooLarge
    return [request, *words]


def _claim(write: WriteCall) -> tuple[Argument, ...]:
    """Return the words that name a write; none: it has no name."""
    claim = write.claim
    if claim is None:
        return () if write.name is None else ("CLAIM", write.name, b"", write.step)
    is_whole_call = write.record is None and write.also is None
    # A call of several transactions has a name for each: what was recorded before it.
    progress = sha256(claim.key_hash + (write.after or b"")).digest()
    key = claim.key_hash if is_whole_call else progress
    return ("CLAIM", key, claim.request_hash, write.step)
