"""Events are metered, so that a tenant sees how many its subscribers receive."""

from __future__ import annotations

import pytest

from tenants.sweeps import usage_roll_up
from tests.caller import with_key
from tests.documents.collection import CollectionClient
from tests.realtime.client import Client
from tests.realtime.live.answer import subscribe
from tests.waiting import wait_until

pytestmark = pytest.mark.backend("postgres", reason="usage is metered before the backend is known")


def test_the_overview_counts_events_and_connections(
    client: Client, todos: CollectionClient
) -> None:
    account = todos.account
    answer = subscribe(client, "s", collection=todos.name, filter={})
    for n in range(3):
        todos.insert({"_id": str(n)})
    answer.until_shows([{"_id": "0"}, {"_id": "1"}, {"_id": "2"}])
    caller = with_key(todos.caller.base, account.admin_key)

    def figures() -> tuple[int, int, int]:
        usage_roll_up.sweep()
        body = caller.get(f"/api/v1/tenants/{account.slug}/overview").json()
        events = sum(int(minute["events"]) for minute in body["activity"])
        return body["connections"], body["subscriptions"], events

    wait_until(lambda: figures() == (1, 1, 3), what="the figures of one subscriber")
