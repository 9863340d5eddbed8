"""Publishing after the commit, on a real PostgreSQL and a real Valkey."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from itertools import count
from uuid import uuid4

import psycopg
import pytest
from redis.exceptions import RedisError

from documents.outbox.after_images import CommittedTransaction
from documents.outbox.database import close_relay_pool
from documents.outbox.entries import Image, StreamEntryKind, encode_image
from documents.outbox.events import AppendVerdict, EntryGroup, EventLayer
from documents.outbox.loop_publisher import MAX_QUEUED_BYTES, LoopPublisher
from foundation.valkey_functions import MAX_CALL_BYTES
from rillbase_native import Definition, Operation, Operations, Plan, Value, id_key
from tests.documents.outbox.streams import Streams
from tests.own_valkey import OwnValkey
from tests.waiting import until

ID = Value.parse(b"2")
#: Transaction ids that the suite's database never reaches.
_xids = count(10**12)


@pytest.fixture
async def publisher(
    valkey: OwnValkey, events: EventLayer, settings_environment: pytest.MonkeyPatch
) -> AsyncIterator[LoopPublisher]:
    settings_environment.setenv("EVENTS_URL", valkey.url)
    await events.install(1, "1:2")
    publisher = LoopPublisher(asyncio.get_running_loop())
    publisher.start()
    await until(lambda: publisher.stamp() is not None, "the publisher to find the event layer")
    yield publisher
    await publisher.close()
    await close_relay_pool()


@dataclass(frozen=True, slots=True)
class Wrote:
    """A transaction whose groups are created by the test."""

    xid: int
    appended: Sequence[EntryGroup]

    def groups(self) -> Sequence[EntryGroup]:
        return self.appended


def put(key: int, body: bytes = b"body") -> Image:
    return Image(
        StreamEntryKind.PUT, next(_xids), uuid4(), uuid4(), 1, 5, 7, 1_000, b"key %d" % key, body
    )


def wrote(*images: Image, batch: Sequence[int] | None = None) -> Wrote:
    """Return a transaction: one atomic batch, or one call for each image."""
    entries = [(int(image.key.removeprefix(b"key ")), encode_image(image)) for image in images]
    parts = [entries] if batch else [[entry] for entry in entries]
    return Wrote(images[0].xid, [EntryGroup(part, batch) for part in parts])


def marked(url: str, xid: int) -> bool:
    with psycopg.connect(url) as connection:
        query = "SELECT 1 FROM documents_outboxmark WHERE xid = %s::text::xid8"
        return connection.execute(query, [str(xid)]).fetchone() is not None


async def test_a_write_is_published_as_committed(
    publisher: LoopPublisher, streams: Streams
) -> None:
    tenant, collection = uuid4(), uuid4()
    insert, delete = Operation.insert(Value.parse(b'{"_id": 1}')), Operation.delete(ID)
    there = (id_key(ID), (7).to_bytes(8, "big"), bytes(8), Value.parse(b'{"_id": 2}').bson())
    plan = Plan(
        [(collection.bytes, Definition(None, []))],
        [(Operations([insert, delete]), [("", 0, None)], True, None)],
    )
    changes = plan.apply([[there]], [0], 1_000, [])
    xid = next(_xids)
    publisher.offer(publisher.stamp(), CommittedTransaction(xid, tenant, changes, [5]))
    await until(lambda: len(streams.images()) == 2, "the after-images")
    result = {image.kind: image for image in streams.images()}
    kept, deleted = result[StreamEntryKind.PUT], result[StreamEntryKind.DELETE]
    assert (kept.version, kept.body) == (1, Value.parse(b'{"_id": 1}').bson())
    assert (deleted.version, deleted.body) == (8, Value.parse(b'{"_id": 2}').bson())
    assert deleted.key == id_key(ID)
    assert (kept.created_ms, kept.written_us) == (1_000, 1_000_000)
    assert deleted.created_ms == 946_684_800_000
    for image in (kept, deleted):
        assert (image.xid, image.tenant_id, image.collection_id, image.rules_version) == (
            xid,
            tenant,
            collection,
            5,
        )


async def test_published_writes_are_marked_and_skipped_by_the_relay(
    publisher: LoopPublisher, postgres_url: str
) -> None:
    writes = wrote(put(1))
    publisher.offer(publisher.stamp(), writes)
    await until(lambda: marked(postgres_url, writes.xid), "the mark")


async def test_a_batch_over_two_partitions_is_one_group(
    publisher: LoopPublisher, streams: Streams
) -> None:
    publisher.offer(publisher.stamp(), wrote(put(1), put(2), batch=[1, 2]))
    await until(lambda: len(streams.images()) == 2, "the after-images")
    assert [entry.partitions for p in (0, 1) for entry in streams.read(p)] == [(0, 1), (0, 1)]


async def test_a_transaction_of_many_calls_is_marked_once_all_of_it_is_published(
    publisher: LoopPublisher, streams: Streams, postgres_url: str
) -> None:
    half = bytes(MAX_CALL_BYTES // 2)
    writes = wrote(*(put(key, half) for key in range(12)))
    publisher.offer(publisher.stamp(), writes)
    await until(lambda: marked(postgres_url, writes.xid), "the mark")
    assert sorted(image.key for image in streams.images()) == sorted(
        b"key %d" % key for key in range(12)
    )


async def test_a_writer_that_slept_too_long_cannot_publish_any_more(
    publisher: LoopPublisher, streams: Streams, postgres_url: str
) -> None:
    now_us = publisher.stamp()
    assert now_us is not None
    slept, awake = wrote(put(1)), wrote(put(2))
    publisher.offer(now_us - 6_000_000, slept)
    await asyncio.sleep(0)  # the two must not share a call, which has one stamp
    await asyncio.sleep(0)
    publisher.offer(now_us, awake)
    await until(lambda: marked(postgres_url, awake.xid), "the mark of the other")
    assert [image.xid for image in streams.images()] == [awake.xid]
    assert not marked(postgres_url, slept.xid)


async def test_writes_succeed_while_valkey_is_down_and_publishing_resumes_after(
    publisher: LoopPublisher, valkey: OwnValkey, events: EventLayer, streams: Streams
) -> None:
    valkey.kill()
    publisher.offer(publisher.stamp(), wrote(put(1)))
    await until(lambda: publisher.stamp() is None, "the publisher to notice")
    publisher.offer(publisher.stamp(), wrote(put(2)))
    valkey.start()
    await until(lambda: valkey_answers(valkey), "Valkey")
    await set_up(events)
    await until(lambda: publisher.stamp() is not None, "the publisher to come back")
    publisher.offer(publisher.stamp(), wrote(put(3)))
    await until(lambda: bool(streams.images()), "the write after the outage")
    assert [image.key for image in streams.images()] == [b"key 3"]


async def test_an_emptied_valkey_gets_no_entries_until_a_relay_has_set_it_up(
    publisher: LoopPublisher, valkey: OwnValkey, events: EventLayer, streams: Streams
) -> None:
    with valkey.client() as client:
        client.flushall()
    publisher.offer(publisher.stamp(), wrote(put(1)))
    await until(lambda: publisher.stamp() is None, "the publisher to notice")
    await set_up(events)
    await until(lambda: publisher.stamp() is not None, "the publisher to come back")
    publisher.offer(publisher.stamp(), wrote(put(2)))
    await until(lambda: bool(streams.images()), "the write after that")
    assert [image.key for image in streams.images()] == [b"key 2"]


async def test_while_valkey_hangs_the_queue_stays_within_its_limit(
    publisher: LoopPublisher, valkey: OwnValkey, streams: Streams
) -> None:
    body = bytes(4 * 1024 * 1024)
    valkey.freeze()
    try:
        stamp_us = publisher.stamp()
        for key in range(40):
            publisher.offer(stamp_us, wrote(put(key, body)))
        queued = publisher.queued_bytes
    finally:
        valkey.thaw()
    assert MAX_QUEUED_BYTES <= queued < MAX_QUEUED_BYTES + 2 * len(body)
    await until(lambda: publisher.queued_bytes == 0, "the queue to drain")
    await until(lambda: bool(streams.images()), "what was queued to come out")


def valkey_answers(valkey: OwnValkey) -> bool:
    with valkey.client() as client:
        return bool(client.ping())


async def set_up(events: EventLayer) -> None:
    """Initialize an empty event layer as a relay does."""
    while True:
        try:
            answer = await events.install(2, "1:2")
        except RedisError:
            await asyncio.sleep(0.01)
            continue
        assert answer.verdict is AppendVerdict.OK
        return
