"""A member ends a subscription of a client."""

from __future__ import annotations

import secrets

import pytest

from realtime.subscriptions.records import SubscriptionRecords
from tests.documents.collection import CollectionClient
from tests.make import make_key
from tests.realtime.client import greeted
from tests.realtime.live.member import Member
from tests.waiting import wait_until

pytestmark = pytest.mark.backend("postgres", reason="ends do not depend on the backend")


async def _nothing(_: SubscriptionRecords) -> None:
    """Look for no requests to end a subscription."""


def test_a_message_ends_a_subscription_although_its_client_does_not_read(
    server: str, todos: CollectionClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Only the message is left.
    monkeypatch.setattr(SubscriptionRecords, "listen", _nothing)
    text = secrets.token_urlsafe(20_000)
    for start in range(0, 600, 50):
        todos.insert_many([{"_id": f"d{start + n}", "text": text} for n in range(50)])
    member = Member(todos)
    with greeted(server, make_key(todos.account.tenant)) as client:
        # More than its client and the sockets between have room for: nothing is read.
        for number in range(4):
            client.send(type="subscribe", id=f"s{number}", collection=todos.name)
        public = member.subscription("s3")
        assert member.caller.delete(f"{member.path}/{public}").status_code == 204
        wait_until(
            lambda: "s3" not in [s["name"] for s in member.caller.get(member.path).json()["items"]],
            what="the subscription to be gone",
        )
