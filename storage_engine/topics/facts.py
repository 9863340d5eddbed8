"""What a call needs to know about its topic, read at most a second ago."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from uuid import UUID

from django.db import connections

from foundation.errors import Forbidden, NotFound
from foundation.resp_pipeline import Argument
from foundation.scope import scoped
from foundation.ttl_cache import TtlCache
from storage_engine.models import Topic
from storage_engine.node.client import client
from storage_engine.node.refusals import as_api_error
from storage_engine.node.wire import CommandRejected, Reply
from tenants.principals import Principal

READ, WRITE = "topics:read", "topics:write"
MAX_TOPICS = 10_000


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """A topic as the data plane needs it."""

    id: UUID
    tenant_id: UUID
    name: str
    kind: str
    #: West, south, east, north, sides, depth of a plane; empty otherwise.
    grid: tuple[float, ...]
    retention_s: int
    max_data_bytes: int

    @property
    def node_name(self) -> str:
        """The topic's name in the storage node."""
        return str(self.id)

    async def call(self, verb: str, *arguments: Argument) -> Reply:
        """Run a command on the topic, which is created in the node if it is missing there."""
        node = client()
        try:
            return await node.try_call(self.tenant_id, verb, self.node_name, *arguments)
        except CommandRejected as error:
            if error.code != "NO_TOPIC":
                raise as_api_error(error) from None
        await node.call(self.tenant_id, *self._creation())
        return await node.call(self.tenant_id, verb, self.node_name, *arguments)

    def _creation(self) -> list[Argument]:
        command: list[Argument] = ["RB.TOPIC.CREATE", self.node_name, "KIND"]
        if self.kind == Topic.Kind.PLANE:
            *bounds, sides, depth = self.grid
            command += ["grid", *map(repr, bounds), int(sides), int(depth)]
        else:
            command.append(self.kind)
        return [*command, "RETENTION", f"{self.retention_s}s"]


def allow(principal: Principal, scope: str) -> None:
    """Raise unless the caller has the scope. End users are rejected, because topics have no
    access rules.
    """
    if principal.obeys_access_rules:
        raise Forbidden("Topics are available to keys and members, not to end users.")
    principal.require_scope(scope)


async def find(tenant_id: UUID, name: str) -> TopicFacts:
    """Return a tenant's topic, or raise `NotFound`."""
    return await _cache.get((tenant_id, name))


async def _read(key: tuple[UUID, str], _: TopicFacts | None) -> TopicFacts:
    return await asyncio.to_thread(_load, *key)


_cache = TtlCache(_read, MAX_TOPICS)


def _load(tenant_id: UUID, name: str) -> TopicFacts:
    try:
        with scoped(tenant_id=tenant_id):
            topic = Topic.objects.filter(name=name).first()
    finally:
        connections["default"].close()
    if topic is None:
        raise NotFound(f"The topic {name[:100]!r} does not exist.")
    grid = topic.grid or {}
    return TopicFacts(
        id=topic.pk,
        tenant_id=tenant_id,
        name=name,
        kind=topic.kind,
        grid=(*grid["bounds"], grid["sides"], grid["depth"]) if grid else (),
        retention_s=topic.retention_s,
        max_data_bytes=topic.max_data_bytes,
    )
