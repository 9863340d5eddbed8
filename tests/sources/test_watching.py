"""What a subscriber sees of a table elsewhere: whole transactions, whatever its source meets."""

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
    from tests.realtime.live.conftest import Backstage
    from tests.sources.upstream import Database, Followed

pytestmark = [pytest.mark.usefixtures("following", "backstage"), pytest.mark.long]
#: More than any group of events.
ACCOUNTS = 1_200

CREATE = (
    "CREATE TABLE accounts (id int PRIMARY KEY, amount int NOT NULL)",
    f"INSERT INTO accounts SELECT k, 0 FROM generate_series(1, {ACCOUNTS}) k",
)
#: Of which every second one gets what the others give.
FIVE_EACH = "UPDATE accounts SET amount = amount + CASE id % 2 WHEN 0 THEN 5 ELSE -5 END"
_ROWS = "SELECT id, amount FROM accounts"


@pytest.fixture(scope="module")
def backstage(server: str, valkey_url: str) -> Iterator[Backstage]:
    with running(server, valkey_url) as backstage:
        yield backstage


@dataclass
class Watcher:
    """A client that holds all accounts, and the table that they come from."""

    answer: Answer
    followed: Followed
    database: Database

    def rows(self) -> dict[int, int]:
        return dict(self.database.rows(_ROWS))

    def held(self) -> dict[int, int]:
        return {each["id"]: each["amount"] for each in self.answer.documents}

    def until_same(self) -> None:
        """Take frames until it holds the table. Money is neither made nor lost on the way."""
        wanted = self.rows()
        while self.held() != wanted:
            self.answer.next()
            assert sum(self.held().values()) == 0, "half of a transaction was shown"

    def until_same_at_last(self) -> None:
        """Take frames until it holds the table, whatever it holds on the way: a copy tells of
        differences as it finds them.
        """
        wanted = self.rows()
        while self.held() != wanted:
            self.answer.next()


@pytest.fixture
def client(server: str, followed: Followed) -> Iterator[Client]:
    key = followed.things.caller.headers["Authorization"].removeprefix("Bearer ")
    with greeted(server, key) as client:
        yield client


@pytest.fixture
def followed(server: str, database: Database) -> Followed:
    from tests.sources.upstream import follow

    database.run(*CREATE)
    return follow(server, database, "accounts")


@pytest.fixture
def watcher(client: Client, followed: Followed, database: Database) -> Watcher:
    """Somebody who was there before the table had been copied."""
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


def test_transactions_are_seen_whole_one_after_the_other(watcher: Watcher) -> None:
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
    wanted = {"id": {"$in": [1, 2, 700, 1_100]}}
    few = subscribe(client, "few", collection=watcher.followed.things.name, filter=wanted)
    before = len(few.frames)
    watcher.database.run(FIVE_EACH)
    while [each["amount"] for each in few.documents] == [0, 0, 0, 0]:
        few.next()
    assert [each["amount"] for each in few.documents] == [-5, 5, 5, 5]
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
    assert watcher.held() == dict.fromkeys(range(1, ACCOUNTS + 1), 0)
    followed.admin.post(followed.path + ":rebuild")
    watcher.until_same_at_last()


def test_a_removed_source_leaves_documents_and_subscriptions(watcher: Watcher) -> None:
    followed = watcher.followed
    transfer(watcher.database, 1, 2, 3)
    watcher.until_same()
    assert followed.admin.delete(followed.path).status_code == 204
    transfer(watcher.database, 1, 2, 3)
    followed.things.insert({"_id": 9_000, "id": 9_000, "amount": 0})
    while 9_000 not in watcher.held():
        watcher.answer.next()
    assert watcher.held()[1] == -3
