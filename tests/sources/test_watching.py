"""A subscriber sees whole transactions of a source's table, whatever fails."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.realtime.client import Client, greeted
from tests.realtime.live.answer import Answer, subscribe
from tests.realtime.live.conftest import running
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.realtime.live.conftest import BackgroundProcesses
    from tests.sources.upstream import Database, FollowedCollection

pytestmark = [pytest.mark.usefixtures("following", "background"), pytest.mark.long]
#: More than any group of events.
ACCOUNTS = 1_200

CREATE = (
    "CREATE TABLE accounts (id int PRIMARY KEY, amount int NOT NULL)",
    f"INSERT INTO accounts SELECT k, 0 FROM generate_series(1, {ACCOUNTS}) k",
)
#: Accounts, every second of which receives what the others send.
FIVE_EACH = "UPDATE accounts SET amount = amount + CASE id % 2 WHEN 0 THEN 5 ELSE -5 END"
_ROWS = "SELECT id, amount FROM accounts"


@pytest.fixture(scope="module")
def background(server: str, valkey_url: str) -> Iterator[BackgroundProcesses]:
    with running(server, valkey_url) as background:
        yield background


@dataclass
class Watcher:
    """A client that follows all accounts, and the table that they come from."""

    answer: Answer
    followed: FollowedCollection
    database: Database

    def rows(self) -> dict[int, int]:
        return dict(self.database.rows(_ROWS))

    def amounts(self) -> dict[int, int]:
        return {document["id"]: document["amount"] for document in self.answer.documents}

    def until_same(self) -> None:
        """Read frames until the client has the table's rows. The total never changes on the way."""
        expected = self.rows()
        while self.amounts() != expected:
            self.answer.next()
            assert sum(self.amounts().values()) == 0, "half of a transaction was shown"

    def until_same_at_last(self) -> None:
        """Read frames until the client has the table's rows. The total may change on the way,
        because a copy reports differences as it finds them.
        """
        expected = self.rows()
        while self.amounts() != expected:
            self.answer.next()


@pytest.fixture
def client(server: str, followed: FollowedCollection) -> Iterator[Client]:
    key = followed.things.caller.headers["Authorization"].removeprefix("Bearer ")
    with greeted(server, key) as client:
        yield client


@pytest.fixture
def followed(server: str, database: Database) -> FollowedCollection:
    from tests.sources.upstream import follow

    database.run(*CREATE)
    return follow(server, database, "accounts")


@pytest.fixture
def watcher(client: Client, followed: FollowedCollection, database: Database) -> Watcher:
    """A client that subscribed before the table was copied."""
    answer = subscribe(client, "all", collection=followed.things.name)
    watcher = Watcher(answer, followed, database)
    watcher.until_same_at_last()
    followed.until_state("live")
    return watcher


def transfer(database: Database, giver: int, taker: int, amount: int) -> None:
    database.run(
        f"UPDATE accounts SET amount = amount - {amount} WHERE id = {giver}",
        f"UPDATE accounts SET amount = amount + {amount} WHERE id = {taker}",
    )


def test_transactions_become_visible_as_a_whole_and_in_order(watcher: Watcher) -> None:
    for number in range(1, 60):
        transfer(watcher.database, number, 2 * number, number)
    watcher.until_same()
    assert watcher.answer.state == "live"


def test_a_transaction_of_more_rows_than_a_group_has_is_a_new_result(watcher: Watcher) -> None:
    before = len(watcher.answer.frames)
    watcher.database.run(FIVE_EACH)
    watcher.until_same()
    kinds = [frame["type"] for frame in watcher.answer.frames[before:]]
    assert kinds.count("reset") == 1
    assert "event" not in kinds


def test_a_large_transaction_of_which_few_rows_are_watched_is_one_group(
    client: Client, watcher: Watcher
) -> None:
    expected = {"id": {"$in": [1, 2, 700, 1_100]}}
    few = subscribe(client, "few", collection=watcher.followed.things.name, filter=expected)
    before = len(few.frames)
    watcher.database.run(FIVE_EACH)
    while [document["amount"] for document in few.documents] == [0, 0, 0, 0]:
        few.next()
    assert [document["amount"] for document in few.documents] == [-5, 5, 5, 5]
    events = few.frames[before:]
    assert [frame["type"] for frame in events] == ["event"] * 4
    assert len({frame["txn"]["id"] for frame in events}) == 1


def test_a_rebuild_delivers_only_changed_rows(watcher: Watcher) -> None:
    followed, database = watcher.followed, watcher.database
    followed.admin.patch(followed.path, {"paused": True})
    followed.until_state("paused")
    transfer(database, 1, 2, 7)
    database.run("DELETE FROM accounts WHERE id = 5", "INSERT INTO accounts VALUES (5000, 0)")
    drop = (
        "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots "
        "WHERE database = current_database() AND NOT active"
    )
    wait_until(lambda: bool(database.rows(drop)), what="the slot to be dropped")
    before = len(watcher.answer.frames)
    followed.admin.patch(followed.path, {"paused": False})
    watcher.until_same_at_last()
    followed.until_copied_for("slot_lost")
    changed = {frame["key"] for frame in watcher.answer.frames[before:] if frame["type"] == "event"}
    assert changed == {1, 2, 5, 5_000}
    transfer(database, 2, 3, 9)
    watcher.until_same()


def test_a_changed_type_stops_events_until_the_owner_confirms_it(watcher: Watcher) -> None:
    followed, database = watcher.followed, watcher.database
    database.run("ALTER TABLE accounts ALTER amount TYPE bigint")
    transfer(database, 1, 2, 3)
    followed.until_condition("type_changed")
    assert watcher.amounts() == dict.fromkeys(range(1, ACCOUNTS + 1), 0)
    followed.admin.post(followed.path + ":rebuild")
    watcher.until_same_at_last()


def test_a_removed_source_leaves_documents_and_subscriptions(watcher: Watcher) -> None:
    followed = watcher.followed
    transfer(watcher.database, 1, 2, 3)
    watcher.until_same()
    assert followed.admin.delete(followed.path).status_code == 204
    transfer(watcher.database, 1, 2, 3)
    followed.things.insert({"_id": 9_000, "id": 9_000, "amount": 0})
    while 9_000 not in watcher.amounts():
        watcher.answer.next()
    assert watcher.amounts()[1] == -3
