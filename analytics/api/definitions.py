"""GET the dataset itself: its tables."""

from __future__ import annotations

from analytics import facts
from analytics.api.dataset_access import in_scope
from analytics.definitions.describe import describe
from analytics.facts import READ
from data_plane.calls import Call
from data_plane.http import CallResponse, json_answer
from data_plane.request_reader import parameters


async def read(call: Call) -> CallResponse:
    """GET a dataset's definition."""
    parameters(call)
    facts.allow(call.principal, READ)
    name = call.parameters["dataset"]
    return json_answer(await in_scope(call, lambda: describe(facts.find(name))))
