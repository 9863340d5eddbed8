"""Definitions, sizes and indexes of the node's collections, for code that is not asynchronous."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import NamedTuple, cast
from uuid import UUID

from django.db import transaction
from redis.exceptions import ResponseError

from documents.models import Collection
from documents.store import facts
from documents.store.node.definitions import call, install_current, node_name
from documents.store.outdated_calls import retried
from documents.store.sync import run
from foundation.resp_pipeline import Argument
from storage_engine.node.admin import code_of, tenant_connection
from storage_engine.node.publication import member, number


class StoredSize(NamedTuple):
    """The size of a collection's documents."""

    documents: int
    #: As BSON.
    bytes: int
    #: The greatest version of a deleted document.
    version_floor: int


class IndexReading(NamedTuple):
    """How an index has been used since the node started. Fields as in `technique_advice`."""

    lookups: int
    newest: int
    ordered: int
    #: Lookups whose entries were counted, and the sum of these counts.
    counted: int
    entries: int
    #: In millionths; None: too few blocks.
    block_share: int | None


class CollectionReading(NamedTuple):
    """How a collection has been used since the node started."""

    #: Another one after each start of the node.
    run: str
    reads: int
    writes: int
    #: By number.
    indexes: dict[int, IndexReading]


class ComparedPart(NamedTuple):
    """Documents or entries that were compared with each other."""

    examined: int
    #: Numbers of indexes, with keys of documents.
    faults: list[tuple[int, bytes]]
    #: The entry and the key of a document after which the next part begins; None: there is none.
    after: tuple[bytes, bytes] | None


class IndexedPart(NamedTuple):
    """Documents that were added to an index."""

    documents: int
    #: The key after which the next part begins; None: there is none.
    after: bytes | None


def install_after_commit(collection: Collection) -> None:
    """Install the definition of a native collection once its change is committed: before the caller
    is answered, so that nothing obeys the previous one from then on.
    """
    if collection.is_native:
        install = partial(install_current, collection.tenant_id, collection.name)
        transaction.on_commit(partial(run, install))


def drop_after_commit(collection: Collection) -> None:
    """Remove the documents of a native collection once it is dropped."""
    if collection.is_native:
        # A failure is repeated by the task that removes the collection.
        transaction.on_commit(
            partial(drop_from_node, collection.tenant_id, collection.pk), robust=True
        )


def drop_from_node(tenant_id: UUID, collection_id: UUID) -> None:
    """Remove a collection from the node."""
    with tenant_connection(tenant_id) as node:
        if node is not None:
            node.call("RB.COL.DROP", str(collection_id))


def sizes_of(tenant_id: UUID, collection_ids: Iterable[UUID]) -> dict[UUID, StoredSize]:
    """Return the sizes of native collections. One that the node does not have yet is empty."""
    sizes = {}
    with tenant_connection(tenant_id) as node:
        for collection_id in collection_ids:
            sizes[collection_id] = StoredSize(0, 0, 0)
            if node is None:
                continue
            try:
                reply = node.call("RB.COL.INFO", str(collection_id))
            except ResponseError as error:
                if code_of(error) != "NO_COLLECTION":
                    raise
                continue
            members = _members(reply)
            names = (b"documents", b"bytes", b"version_floor")
            sizes[collection_id] = StoredSize(*(_integer(members, name) for name in names))
    return sizes


def counters_of(tenant_id: UUID, collection_id: UUID) -> CollectionReading | None:
    """Return how a collection has been used; None: the node does not have it yet."""
    with tenant_connection(tenant_id) as node:
        if node is None:
            return None
        try:
            reply = node.call("RB.COL.USAGE", str(collection_id))
        except ResponseError as error:
            if code_of(error) != "NO_COLLECTION":
                raise
            return None
    usage = _members(reply)
    indexes = [_members(index) for index in cast("list[object]", usage[b"indexes"])]
    return CollectionReading(
        run=cast("bytes", usage[b"run"]).decode(),
        reads=_integer(usage, b"reads"),
        writes=_integer(usage, b"writes"),
        indexes={_integer(index, b"number"): _index_counters(index) for index in indexes},
    )


def _index_counters(members: dict[bytes, object]) -> IndexReading:
    return IndexReading(
        lookups=_integer(members, b"lookups"),
        newest=_integer(members, b"newest"),
        ordered=_integer(members, b"ordered"),
        counted=_integer(members, b"counted"),
        entries=_integer(members, b"entries"),
        block_share=cast("int | None", members[b"block_share"]),
    )


def _members(reply: object) -> dict[bytes, object]:
    """Read a map, which is a list of names and values in the protocol of these connections."""
    words = cast("list[object]", reply)
    return dict(zip(cast("list[bytes]", words[::2]), words[1::2], strict=True))


def _integer(members: dict[bytes, object], name: bytes) -> int:
    return int(cast("int", members[name]))


def build_part(
    tenant_id: UUID, name: str, index_number: int, after: bytes, documents: int
) -> IndexedPart:
    """Add the next documents to an index. Raise if one of them violates it."""

    async def build() -> IndexedPart:
        collection = await facts.find(tenant_id, name, fresh=True)
        head = ("RB.COL.BUILD", node_name(collection), collection.write_version, index_number)
        position: tuple[Argument, ...] = ("AFTER", after) if after else ()
        reply = await call([collection], *head, *position, "COUNT", documents)
        following = cast("bytes | None", member(reply, b"after"))
        return IndexedPart(number(reply, b"documents"), following)

    return run(partial(retried, build))


def check_part(
    tenant_id: UUID, name: str, index_number: int, after: tuple[bytes, bytes]
) -> ComparedPart:
    """Compare the next entries of an index with the documents; of index 0: the next documents with
    the entries of all indexes.
    """

    async def check() -> ComparedPart:
        collection = await facts.find(tenant_id, name, fresh=True)
        head = ("RB.COL.CHECK", node_name(collection), collection.write_version, index_number)
        position: tuple[Argument, ...] = ("AFTER", *after) if any(after) else ()
        reply = await call([collection], *head, *position)
        faults = cast("list[tuple[int, bytes]]", member(reply, b"faults"))
        following = cast("list[bytes] | None", member(reply, b"after"))
        return ComparedPart(
            number(reply, b"examined"),
            [(index, key) for index, key in faults],
            None if following is None else (following[0], following[1]),
        )

    return run(partial(retried, check))
