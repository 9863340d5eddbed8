"""The relay on a real PostgreSQL and a real Valkey, with writers that publish nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import psycopg
import pytest

from documents.outbox.entries import Image, StreamEntryKind, Tick
from documents.outbox.loop import RelayLoop
from tests.background_service import running_service
from tests.documents.outbox.sql_writer import SqlWriter, key_bytes
from tests.documents.outbox.streams import Streams
from tests.own_valkey import OwnValkey
from tests.waiting import until


@pytest.fixture(autouse=True)
def _outbox_is_empty(postgres_url: str) -> None:
    """A relay publishes all writes of the last minute into an empty Valkey."""
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute("TRUNCATE documents_outbox, documents_outboxmark")


@asynccontextmanager
async def running_relay(
    valkey: OwnValkey, settings: pytest.MonkeyPatch
) -> AsyncIterator[RelayLoop]:
    settings.setenv("EVENTS_URL", valkey.url)
    async with running_service(RelayLoop()) as loop:
        await until(lambda: loop.status()["seconds_since_tick"] is not None, "the relay to lead")
        yield loop


@pytest.fixture
async def relay(
    valkey: OwnValkey, settings_environment: pytest.MonkeyPatch
) -> AsyncIterator[RelayLoop]:
    async with running_relay(valkey, settings_environment) as loop:
        yield loop


@pytest.fixture
def writer(postgres_url: str) -> SqlWriter:
    return SqlWriter(postgres_url)


def images(streams: Streams, writer: SqlWriter) -> list[Image]:
    return [image for image in streams.images() if image.collection_id == writer.collection]


def versions(streams: Streams, writer: SqlWriter, key: int) -> list[int]:
    return [image.version for image in images(streams, writer) if image.key == key_bytes(key)]


def is_proven(streams: Streams, xid: int) -> bool:
    """Return whether ticks in all streams prove that this transaction's images were published."""
    return all(
        any(tick.snapshot.sees(xid) for tick in streams.ticks(partition))
        for partition in range(len(streams.names))
    )


async def test_the_relay_publishes_what_writers_did_not(
    relay: RelayLoop, streams: Streams, writer: SqlWriter
) -> None:
    writer.write(4, 7, body=b"as it stands")
    await until(lambda: len(images(streams, writer)) == 2, "the after-images")
    for image in images(streams, writer):
        assert (image.kind, image.version, image.body) == (StreamEntryKind.PUT, 1, b"as it stands")
        assert (image.tenant_id, image.rules_version) == (writer.tenant, 1)


async def test_a_version_has_the_time_that_reads_return(
    relay: RelayLoop, streams: Streams, writer: SqlWriter
) -> None:
    with writer.transaction() as open_one:
        open_one.write(1, b"one")
        open_one.set_updated_at(1_700_000_000_123_987)
    await until(lambda: len(images(streams, writer)) == 1, "the after-image")
    (image,) = images(streams, writer)
    assert image.written_us // 1000 == 1_700_000_000_123


async def test_a_delete_contains_the_id_and_a_superseded_version_has_no_body(
    relay: RelayLoop, streams: Streams, writer: SqlWriter
) -> None:
    with writer.transaction() as first:
        first.write(1, b"one")
        first.write(1, b"two")
        first.write(1, None)
    await until(lambda: len(images(streams, writer)) == 3, "all three versions")
    result = {image.version: (image.kind, image.body) for image in images(streams, writer)}
    assert result == {
        1: (StreamEntryKind.SUPERSEDED, b""),
        2: (StreamEntryKind.SUPERSEDED, b""),
        3: (StreamEntryKind.DELETE, b"the id"),
    }


async def test_a_later_writer_of_a_document_is_published_before_an_earlier_one(
    streams: Streams,
    writer: SqlWriter,
    valkey: OwnValkey,
    settings_environment: pytest.MonkeyPatch,
) -> None:
    with writer.transaction() as batch:
        batch.write(1, b"of the batch", (1, 3))
        batch.write(3, b"of the batch", (1, 3))
    writer.write(1, 5, body=b"again")
    writer.write(5, body=b"once more")
    async with running_relay(valkey, settings_environment):
        await until(lambda: is_proven(streams, batch.xid), "a tick that sees the batch")
    items = [(image.key, image.version, image.kind) for image in images(streams, writer)]
    # Marks are written shortly after the entries. A round that still finds a row unmarked publishes
    # it again, and readers recognize it by its version. Only the first publication counts here.
    items = list(dict.fromkeys(items))
    assert items == [
        (key_bytes(5), 2, StreamEntryKind.PUT),
        (key_bytes(1), 2, StreamEntryKind.PUT),
        (key_bytes(5), 1, StreamEntryKind.SUPERSEDED),
        (key_bytes(1), 1, StreamEntryKind.SUPERSEDED),
        (key_bytes(3), 1, StreamEntryKind.PUT),
    ]


async def test_a_batch_names_its_partitions(
    relay: RelayLoop, streams: Streams, writer: SqlWriter
) -> None:
    writer.write(2, 3, 4, batch=True)
    writer.write(5)
    await until(lambda: len(images(streams, writer)) == 4, "the after-images")
    entries = [entry for partition in (0, 1) for entry in streams.read(partition)]
    named = {
        entry.content.key: entry.partitions
        for entry in entries
        if isinstance(entry.content, Image) and entry.content.collection_id == writer.collection
    }
    batch = dict.fromkeys(map(key_bytes, (2, 3, 4)), (0, 1))
    assert named == {**batch, key_bytes(5): ()}


async def test_a_late_commit_is_published_and_no_earlier_tick_covers_it(
    relay: RelayLoop, streams: Streams, writer: SqlWriter
) -> None:
    with writer.transaction() as late:
        late.write(1, b"begun first")
        with writer.transaction() as quick:
            quick.write(2, b"committed first")
        await until(lambda: is_proven(streams, quick.xid), "a tick that sees the quick one")
        assert versions(streams, writer, 2) == [1]
        assert not is_proven(streams, late.xid)
    await until(lambda: is_proven(streams, late.xid), "a tick that sees the late one")
    assert versions(streams, writer, 1) == [1]


async def test_ticks_count_the_entries_of_their_stream(
    relay: RelayLoop, streams: Streams, writer: SqlWriter
) -> None:
    with writer.transaction() as transaction:
        for key in range(20):
            transaction.write(key, b"body")
    await until(lambda: is_proven(streams, transaction.xid), "a tick that sees them all")
    for partition in (0, 1):
        for number, entry in streams.read_numbered(partition):
            if isinstance(entry.content, Tick):
                assert entry.content.count == number


async def test_a_transaction_larger_than_a_page_is_published_completely(
    relay: RelayLoop, streams: Streams, writer: SqlWriter
) -> None:
    with writer.transaction() as large:
        for key in range(12):
            large.write(key, bytes(1024 * 1024))
    await until(lambda: is_proven(streams, large.xid), "a tick that sees it")
    assert sorted(image.key for image in images(streams, writer)) == sorted(
        map(key_bytes, range(12))
    )


async def test_an_emptied_valkey_gets_all_kept_writes_before_the_next_tick(
    relay: RelayLoop, streams: Streams, writer: SqlWriter, valkey: OwnValkey
) -> None:
    with writer.transaction() as transaction:
        transaction.write(1, b"body")
    await until(lambda: is_proven(streams, transaction.xid), "the first tick")
    first = streams.ticks()[-1]
    with valkey.client() as client:
        client.flushall()
    await until(lambda: bool(streams.ticks()), "a tick of the new life")
    assert versions(streams, writer, 1) == [1]
    assert streams.ticks()[0].incarnation != first.incarnation
    assert streams.ticks()[0].token >= first.token


async def test_a_killed_valkey_gets_all_kept_writes_again(
    relay: RelayLoop, streams: Streams, writer: SqlWriter, valkey: OwnValkey
) -> None:
    with writer.transaction() as before:
        before.write(1, b"before")
    await until(lambda: is_proven(streams, before.xid), "the first tick")
    valkey.kill()
    with writer.transaction() as meanwhile:
        meanwhile.write(2, b"meanwhile")
    valkey.start()
    await until(lambda: bool(streams.ticks()), "a tick of the new life")
    await until(lambda: is_proven(streams, meanwhile.xid), "a tick that sees the write")
    assert versions(streams, writer, 1) == versions(streams, writer, 2) == [1]


async def test_when_the_leader_stops_another_relay_leads_with_a_higher_token(
    valkey: OwnValkey,
    settings_environment: pytest.MonkeyPatch,
    streams: Streams,
    writer: SqlWriter,
) -> None:
    async with AsyncExitStack() as stack:
        async with running_relay(valkey, settings_environment):
            second = await stack.enter_async_context(running_service(RelayLoop()))
            await until(lambda: second.ready, "the second relay to stand by")
            token = streams.ticks()[-1].token
        with writer.transaction() as transaction:
            transaction.write(1, b"body")
        await until(lambda: is_proven(streams, transaction.xid), "a tick of the second relay")
        assert streams.ticks()[-1].token > token
