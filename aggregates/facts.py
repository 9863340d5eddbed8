"""What a call needs to know about its aggregate, at most a second old."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import connections

from aggregates.definitions.describe import definition_of, for_node, notices_of
from aggregates.models import Aggregate
from aggregates.node import NO_AGGREGATE
from foundation.errors import Conflict, Forbidden, NotFound
from foundation.json_types import JsonObject
from foundation.names import NAME_PATTERN
from foundation.resp_pipeline import Argument
from foundation.scope import scoped
from foundation.ttl_cache import TtlCache
from storage_engine.node.client import client
from storage_engine.node.wire import CommandRejected, Reply
from tenants.principals import Principal

READ, WRITE = "aggregates:read", "aggregates:write"
MAX_AGGREGATES = 10_000
_NAME = re.compile(rf"{NAME_PATTERN}\Z")


@dataclass(frozen=True, slots=True)
class AggregateFacts:
    """An aggregate as the data plane needs it."""

    id: UUID
    tenant_id: UUID
    name: str
    #: The definition as sent to the storage node.
    definition: bytes
    measures: frozenset[str]
    #: The field that holds an event's time; None: there are no buckets.
    time_field: str | None
    is_view: bool
    #: Of a view: the generation that queries read; 0: none yet.
    generation: int
    #: Why a view has stopped, or empty.
    error: str
    #: What the rows of a view lack.
    notices: Sequence[JsonObject]

    @property
    def node_name(self) -> str:
        """The aggregate's name in the storage node."""
        return str(self.id)

    async def call(self, verb: str, *arguments: Argument, once: bool = False) -> Reply:
        """Run a command, or raise `CommandRejected`. Declares an aggregate that the node lacks.

        `once`: it must not be sent again if no reply arrives.
        """
        self.require_rows()
        node = client()
        send = node.call_once if once else node.try_call
        try:
            return await send(self.tenant_id, verb, self.node_name, *arguments)
        except CommandRejected as error:
            if error.code != NO_AGGREGATE or self.is_view:
                raise
        await node.try_call(self.tenant_id, "RB.AGG.DEFINE", self.node_name, self.definition)
        return await send(self.tenant_id, verb, self.node_name, *arguments)

    @property
    def is_being_built(self) -> bool:
        """Whether it is a view that is still being built."""
        return self.is_view and not self.generation and not self.error

    def require_rows(self) -> None:
        """Raise unless there are rows to query."""
        if self.is_view and not self.generation:
            why = self.error or (
                "It is being built; its documents are being read for the first time."
            )
            raise Conflict(f"The view has no rows yet. {why}")


def allow(principal: Principal, scope: str) -> None:
    """Raise unless the scope allows it. Aggregates have no access rules, so no end users either."""
    if principal.obeys_access_rules:
        raise Forbidden("Aggregates are available to keys and members, not to end users.")
    principal.require_scope(scope)


async def find(tenant_id: UUID, name: str) -> AggregateFacts:
    """Return a tenant's aggregate, or raise `NotFound`."""
    if not _NAME.match(name):
        raise _not_found(name)
    return await _cache.get((tenant_id, name))


async def _read(key: tuple[UUID, str], _: AggregateFacts | None) -> AggregateFacts:
    return await asyncio.to_thread(_load, *key)


_cache = TtlCache(_read, MAX_AGGREGATES)


def _load(tenant_id: UUID, name: str) -> AggregateFacts:
    try:
        with scoped(tenant_id=tenant_id):
            row = Aggregate.objects.filter(name=name).first()
    finally:
        connections["default"].close()
    if row is None:
        raise _not_found(name)
    definition = definition_of(row)
    measures, moment = definition["measures"], definition["time"]
    return AggregateFacts(
        id=row.pk,
        tenant_id=tenant_id,
        name=name,
        definition=for_node(row),
        measures=frozenset(measures if isinstance(measures, dict) else ()),
        time_field=str(moment["field"]) if isinstance(moment, dict) else None,
        is_view=row.is_view,
        generation=row.generation,
        error=row.error,
        notices=notices_of(row),
    )


def _not_found(name: str) -> NotFound:
    return NotFound(f"The aggregate {name[:100]!r} does not exist.")
