"""What calls of aggregates have in common."""

from __future__ import annotations

from aggregates import facts
from aggregates.facts import AggregateFacts
from data_plane.calls import Call


async def aggregate_of(call: Call, scope: str) -> AggregateFacts:
    """Return the aggregate that the path names, if the caller has the scope."""
    facts.allow(call.principal, scope)
    return await facts.find(call.tenant.id, call.parameters["aggregate"])
