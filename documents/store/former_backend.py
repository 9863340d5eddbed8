"""Calls that were recorded in the backend that a collection has left."""

from __future__ import annotations

from collections.abc import Sequence

from documents.store import claims
from documents.store.attempt import WriteResponse
from documents.store.facts import CollectionFacts
from documents.store.node.writes import recorded_in_node
from documents.store.write import WriteCall, WriteResult
from foundation.errors import ApiError
from rillbase_native import Outcomes


async def recorded_before_move(
    write: WriteCall, collections: Sequence[CollectionFacts]
) -> WriteResponse | None:
    """Return the outcome of a call with an idempotency key that has been executed before its
    collection moved; None: it has not.
    """
    moved = [collection for collection in collections if collection.has_moved]
    if write.claim is None or not moved:
        return None
    if not moved[0].is_native:
        return await recorded_in_node(write, moved[0])
    recorded = await claims.find_recorded(write.claim)
    if recorded is None or write.record is not None:
        # The progress of a longer call is in PostgreSQL for both backends.
        return None
    try:
        response = recorded.response(write.claim)
    except ApiError as error:
        return error
    return None if response is None else WriteResult(Outcomes(), response)
