"""Groups and lookups through a random history: one-time and live results equal those of SQL."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from tests.caller import Caller
from tests.documents.collection import CollectionClient, make_collection
from tests.realtime.client import Client, greeted, opened
from tests.realtime.live.answer import Answer, begin
from tests.realtime.live.by_sql import (
    GroupedQuery,
    Mirror,
    Query,
    mirrored,
    random_group,
    random_lookup,
)
from tests.realtime.live.history import SIDES, Document, History, Write

if TYPE_CHECKING:
    from requests import Response

    from tests.realtime.live.conftest import BackgroundProcesses

pytestmark = pytest.mark.backend("postgres", reason="it compares with SQL")

#: How many grouped queries, and how many with lookups, are subscribed to at each of some steps, and
#: queried at others.
WATCHED, ASKED = 4, 3
STEPS, ASKED_EVERY = 60, 4
WATCHED_AT, SETTLED_AT = (0, 8, 25), (39, STEPS - 1)
SETTLED_S = 30.0
MERGE = "application/merge-patch+json"
RULES: dict[str, Document] = {"open": {"read": True}, "ruled": {"read": {"public": True}}}


@dataclass
class World:
    """Two collections, their readers, and their expected contents."""

    sides: dict[str, CollectionClient]
    anonymous: Caller
    mirror: Mirror
    history: History
    seed: int
    step: int = 0

    @property
    def rng(self) -> Random:
        return self.history.rng

    def write(self) -> None:
        """Write one document, several of one collection, or several of both."""
        self.step += 1
        match self.rng.randrange(10):
            case 0 | 1 | 2:
                writes = self.history.batch([self.rng.choice(SIDES)])
                self._check_written(self._bulk(writes), writes)
            case 3 | 4:
                writes = self.history.batch(SIDES)
                self._check_written(self._transaction(writes), writes)
            case 5:
                self._refused()
            case _:
                write = self.history.one()
                self._check_written(self._alone(write), [write])

    def _check_written(self, answer: Response, writes: Sequence[Write]) -> None:
        assert answer.ok, f"{answer.text} to {writes}, {self}"
        self.history.take(writes)
        self.mirror.take(self.history.bodies, [write.place for write in writes])

    def _refused(self) -> None:
        """Attempt an invalid write after a valid one in a batch: neither takes effect."""
        wrong = self.history.forbidden()
        if wrong is not None:
            answer = self._transaction([*self._before(wrong), wrong])
            assert answer.status_code == 409, f"{answer.text}, {self}"

    def _before(self, wrong: Write) -> list[Write]:
        writes = self.history.batch(SIDES)
        return [write for write in writes if write.place != wrong.place]

    def _bulk(self, writes: Sequence[Write]) -> Response:
        path = f"{self.sides[writes[0].side].path}/documents:bulk"
        return self.caller.post(path, {"operations": [write.operation() for write in writes]})

    def _transaction(self, writes: Sequence[Write]) -> Response:
        operations = [{"collection": write.side, **write.operation()} for write in writes]
        return self.caller.post("/v1/transactions", {"operations": operations})

    def _alone(self, write: Write) -> Response:
        documents = f"{self.sides[write.side].path}/documents"
        path = f"{documents}/{write.id if isinstance(write.id, str) else quote(f'~{write.id}')}"
        match write.kind:
            case "insert":
                return self.caller.post(documents, {"_id": write.id, **write.change})
            case "replace":
                return self.caller.put(path, write.change)
            case "update":
                return self.caller.patch(path, write.change)
            case "merge":
                return self.caller.patch(path, write.change, Content_Type=MERGE)
            case "delete":
                return self.caller.delete(path)

    @property
    def caller(self) -> Caller:
        return self.sides["open"].caller

    def drawn(self, count: int) -> list[Query]:
        """Draw equally many groups and lookups, half of them for a caller that may not read
        everything.
        """
        return [
            draw(self.rng, public=self.rng.random() < 0.5)
            for draw in (random_group, random_lookup)
            for _ in range(count)
        ]

    def check_query(self, query: Query) -> list[Document]:
        """Run the query, and compare its result with SQL."""
        caller = self.anonymous if query.public else self.caller
        path = f"{self.sides[query.side].path}/query"
        answer = caller.post(path, {"limit": 1000, **query.members()})
        assert answer.ok, f"{answer.text} to {query}, {self}"
        rows = answer.json()["rows" if isinstance(query, GroupedQuery) else "items"]
        items = [longs(row["document"]) for row in rows]
        plain = text([query.plain(document) for document in items])
        assert plain == text(self.mirror.answer(query)), f"{query}, {self}"
        return items

    def watched(self, client: Client, name: str, query: Query) -> Answer:
        return begin(client, name, collection=query.side, **query.members())

    def settle(self, answer: Answer, query: Query) -> None:
        """Wait until a subscription has the current result of its query."""
        expected = text(self.check_query(query))
        try:
            while not answer.ready or text(map(longs, answer.documents)) != expected:
                answer.next(SETTLED_S)
        except TimeoutError:
            assert text(map(longs, answer.documents)) == expected, f"live {query}, {self}"
            raise

    def __str__(self) -> str:
        return f"at step {self.step} of the history with the seed {self.seed}"


def text(documents: Iterable[Document]) -> list[str]:
    """As text, so that 1, 1.0 and true are different."""
    return [json.dumps(document, sort_keys=True) for document in documents]


def longs(document: Document) -> Document:
    """Read the integers that readers of JSON would round."""
    read: Document = json.loads(json.dumps(document), object_hook=_long)
    return read


def _long(value: Document) -> object:
    return int(value["$numberLong"]) if "$numberLong" in value else value


@pytest.fixture
def world(server: str, background: BackgroundProcesses, postgres_url: str) -> Iterator[World]:
    first = make_collection(server, name="open", rules=RULES["open"])
    second = make_collection(server, account=first.account, name="ruled", rules=RULES["ruled"])
    seed = random.randrange(2**32)
    with mirrored(postgres_url) as mirror:
        sides = {"open": first, "ruled": second}
        yield World(sides, first.anonymous(), mirror, History(Random(seed)), seed)


@contextmanager
def readers(world: World) -> Iterator[dict[bool, Client]]:
    """Open connections of a caller that reads everything, and of one that reads only public
    documents.
    """
    own = world.caller.headers["Authorization"].removeprefix("Bearer ")
    with greeted(world.caller.base, own) as everything, opened(world.caller.base) as public:
        public.send(type="hello", key=world.anonymous.headers["Rillbase-Key"])
        yield {False: everything, True: public}


def test_groups_and_lookups_equal_sql_through_a_random_history(world: World) -> None:
    watched: list[tuple[Answer, Query]] = []
    with readers(world) as clients:
        for step in range(STEPS):
            if step in WATCHED_AT:
                watched += [
                    (world.watched(clients[query.public], f"{step}-{number}", query), query)
                    for number, query in enumerate(world.drawn(WATCHED))
                ]
            world.write()
            if step % ASKED_EVERY == 0:
                for query in world.drawn(ASKED):
                    world.check_query(query)
            if step in SETTLED_AT:
                for answer, query in watched:
                    world.settle(answer, query)
