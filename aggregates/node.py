"""The storage node's commands for aggregates, for use by tasks, and what its rejections mean."""

from __future__ import annotations

import json
from dataclasses import dataclass
from uuid import UUID

from redis.exceptions import ResponseError

from foundation.valkey_sockets import ValkeySockets
from storage_engine.node import admin

NO_AGGREGATE, EXISTS = "NO_AGGREGATE", "AGGEXISTS"
NOT_READY, NO_GENERATION = "NOTREADY", "NOGENERATION"


@dataclass(frozen=True, slots=True)
class AggregateInfo:
    """The node's state of an aggregate."""

    #: The generation that queries see.
    generation: int
    #: The generation being filled, if any.
    building: int | None


def define(node: ValkeySockets, aggregate_id: UUID, definition: bytes) -> int | None:
    """Create an aggregate unless it exists; None: it exists with another definition."""
    try:
        return _integer(node.call("RB.AGG.DEFINE", str(aggregate_id), definition))
    except ResponseError as error:
        if admin.code_of(error) != EXISTS:
            raise
        return None


def replace(node: ValkeySockets, aggregate_id: UUID, definition: bytes) -> int:
    """Start a new generation beside the one that queries see."""
    return _integer(node.call("RB.AGG.DEFINE", str(aggregate_id), definition, "REPLACE"))


def switch(node: ValkeySockets, aggregate_id: UUID, generation: int) -> str | None:
    """Switch queries to a generation. Return why that is not, or no longer, possible."""
    try:
        node.call("RB.AGG.SWITCH", str(aggregate_id), generation)
    except ResponseError as error:
        if admin.code_of(error) not in (NOT_READY, NO_GENERATION):
            raise
        return admin.code_of(error)
    return None


def info(node: ValkeySockets, aggregate_id: UUID) -> AggregateInfo:
    """Return the state of an existing aggregate."""
    reply = node.call("RB.AGG.INFO", str(aggregate_id))
    members = json.loads(reply) if isinstance(reply, bytes) else {}
    return AggregateInfo(int(members["generation"]), members.get("building"))


def drop(tenant_id: UUID, aggregate_id: UUID) -> None:
    """Remove an aggregate with all its rows."""
    with admin.tenant_connection(tenant_id) as node:
        if node is not None:
            node.call("RB.AGG.DROP", str(aggregate_id))


def _integer(reply: object) -> int:
    if not isinstance(reply, int):
        raise ResponseError("the node returned an unexpected type")
    return reply
