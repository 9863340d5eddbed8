"""Definitions of collections in the storage node.

PostgreSQL has the current definition of each collection, and the node a copy. A change is committed
to PostgreSQL, then installed in the node, and only then reported to its caller. Each read and write
carries the version of the definition that it was made with. If the node has another one, or none,
the current definition is read from PostgreSQL and installed, and the call starts over: a process
that ended between the two steps leaves nothing to repair. The node ignores a definition that is not
newer than its own.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Sequence
from uuid import UUID

from documents.store import claims, facts
from documents.store.facts import CollectionFacts
from documents.store.outdated_calls import OutdatedCall
from foundation.environment import environment
from foundation.resp_pipeline import Argument
from rillbase_native import Value
from storage_engine.node.client import client
from storage_engine.node.refusals import as_api_error, unavailable
from storage_engine.node.wire import CommandRejected, Reply

#: How long a postponed write waits at most until it is sent again, and how often it is sent.
POSTPONED_S, POSTPONED_ATTEMPTS = 0.05, 100
_OTHER_DEFINITION = frozenset({"STALE", "NO_COLLECTION"})


class TooLarge(Exception):
    """The documents of a write are too large together."""


class IndexViolated(Exception):
    """Documents violate an index that is built; the text names them and the reason."""


async def call(
    collections: Sequence[CollectionFacts], *command: Argument, is_idempotent: bool = True
) -> Reply:
    """Send a command that carries the versions of collections' definitions."""
    node, tenant_id = client(), collections[0].tenant_id
    send = node.try_call if is_idempotent else node.call_once
    for _ in range(POSTPONED_ATTEMPTS):
        try:
            return await send(tenant_id, *command)
        except CommandRejected as error:
            if error.code == "POSTPONED":
                await asyncio.sleep(random.uniform(0, POSTPONED_S))  # noqa: S311 -- jitter
                continue
            if error.code not in _OTHER_DEFINITION:
                raise _error(error) from None
        for collection in collections:
            await install_current(tenant_id, collection.name)
        raise OutdatedCall
    raise unavailable()


def _error(rejected: CommandRejected) -> Exception:
    match rejected.code:
        case "SNAPSHOTEXPIRED" | "NO_INDEX":
            # The snapshot, or the index of the plan, was dropped between two parts of a query.
            return OutdatedCall()
        case "TOO_LARGE":
            return TooLarge()
        case "MISMATCH":
            return claims.mismatch()
        case "IN_PROGRESS":
            return claims.in_progress()
        case "DUPLICATE_KEY" | "NOT_INDEXABLE":
            return IndexViolated(rejected.text)
        case _:
            return as_api_error(rejected)


async def install_current(tenant_id: UUID, name: str) -> None:
    """Install the current definition of a collection, or raise if it does not exist any more."""
    collection = await facts.find(tenant_id, name, fresh=True)
    # A collection with the name may have been created in PostgreSQL meanwhile.
    if collection.is_in_node:
        await install(collection)


async def install(collection: CollectionFacts) -> None:
    """Install a definition, unless the node has a newer one."""
    await client().call(
        collection.tenant_id, "RB.COL.DEFINE", node_name(collection), definition(collection)
    )


def _move_stage(collection: CollectionFacts) -> str | None:
    """Return how far a collection's move to PostgreSQL has got."""
    if not collection.is_native or not collection.is_moving:
        return None
    return "sealed" if collection.is_sealed else "copying"


def node_name(collection: CollectionFacts) -> str:
    """Return the name of a collection in its tenant's namespace."""
    return str(collection.id)


def definition(collection: CollectionFacts) -> bytes:
    """Return a definition as the node reads it, in BSON."""
    limits = {
        "array_elements": environment().rillbase_max_array_elements,
        "values": environment().rillbase_max_document_values,
    }
    indexes = [
        {
            "number": index.number,
            "name": index.name,
            "fields": [list(field) for field in index.fields],
            "unique": index.unique,
            "technique": index.technique,
            # While documents are copied here, entries may belong to documents that gave them up.
            "ready": index.ready and collection.is_native,
        }
        for index in collection.indexes
    ]
    members = {
        "write_version": b"%d" % collection.write_version,
        "rules_version": b"%d" % collection.rules_version,
        "version_floor": b"%d" % collection.version_floor,
        "schema": collection.schema or b"null",
        "limits": json.dumps(limits).encode(),
        "indexes": json.dumps(indexes).encode(),
        "move": json.dumps(_move_stage(collection)).encode(),
    }
    text = b",".join(b'"%b":%b' % (name.encode(), member) for name, member in members.items())
    return Value.parse(b"{%b}" % text).bson()
