"""The function through which all entries are appended, on a real Valkey."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from uuid import uuid4

import pytest
import redis

from documents.outbox.entries import (
    Image,
    StreamEntryKind,
    Tick,
    TransactionSnapshot,
    encode_image,
    encode_tick_body,
)
from documents.outbox.events import (
    RETENTION_BYTES,
    RETENTION_MS,
    AppendVerdict,
    EntryGroup,
    EventLayer,
    EventLayerStatus,
    stream,
)
from foundation.valkey_wire import ValkeyWire
from tests.documents.outbox.streams import Streams
from tests.own_valkey import OwnValkey

SECOND_US = 1_000_000
INCARNATION = b"incarnation-name"
SNAPSHOT = TransactionSnapshot(5, 9, (6, 7))


def entry(version: int = 1, body: bytes = b"body") -> bytes:
    return encode_image(
        Image(StreamEntryKind.PUT, 77, uuid4(), uuid4(), version, 3, 7, 1_000, b"key", body)
    )


async def installed(
    events: EventLayer,
    epochs: str = "1:2",
    retention_ms: int = RETENTION_MS,
    retention_bytes: int = RETENTION_BYTES,
) -> EventLayerStatus:
    answer = await events.install(1, epochs, retention_ms, retention_bytes)
    assert answer.verdict is AppendVerdict.OK
    return await events.read_status()


async def append(events: EventLayer, entries: Sequence[tuple[int, bytes]]) -> None:
    status = await events.read_status()
    answer = await events.append(status.time_us, None, [EntryGroup(entries)])
    assert answer.verdict is AppendVerdict.OK


async def tick(events: EventLayer, status: EventLayerStatus, token: int = 1) -> AppendVerdict:
    body = encode_tick_body(token, INCARNATION, SNAPSHOT)
    return (await events.tick(status.time_us, token, status, INCARNATION, body)).verdict


async def test_entries_go_to_the_streams_of_their_keys_hashes(
    events: EventLayer, streams: Streams
) -> None:
    await installed(events)
    await append(events, [(4, entry(1)), (5, entry(2)), (6, entry(3))])
    versions = [[entry.content.version for entry in streams.read(p)] for p in (0, 1)]  # type: ignore[union-attr]
    assert versions == [[1, 3], [2]]


async def test_a_dedicated_grid_epoch_gets_only_its_tenants_writes(
    events: EventLayer, valkey: OwnValkey
) -> None:
    ours, others = uuid4(), uuid4()
    await installed(events, f"1:1 1001:2@{ours.hex} 1002:1@{uuid4().hex}")
    entries = [
        (
            number,
            encode_image(
                Image(StreamEntryKind.PUT, 7, tenant, uuid4(), number, 3, 7, 1, b"k", b"b")
            ),
        )
        for number, tenant in enumerate([ours, others, ours, ours, others], start=1)
    ]
    status = await events.read_status()
    groups = [EntryGroup(entries[:2]), EntryGroup(entries[2:], batch_hashes=[3, 4, 5])]
    answer = await events.append(status.time_us, None, groups)
    assert answer.verdict is AppendVerdict.OK

    with valkey.client() as client:
        shared, own = Streams(client, partitions=1), Streams(client, epoch=1001)
        strangers = Streams(client, epoch=1002, partitions=1)
        assert [image.version for image in shared.images()] == [1, 2, 3, 4, 5]
        assert [image.version for image in own.images()] == [4, 1, 3]
        assert {entry.partitions for entry in own.read(0)} == {(0, 1)}
        assert strangers.images() == []
        assert await tick(events, status) is AppendVerdict.OK
        assert len(strangers.ticks()) == 1


async def test_each_grid_epoch_gets_every_entry(
    events: EventLayer, valkey: OwnValkey, streams: Streams
) -> None:
    await installed(events, "1:2 2:3")
    await append(events, [(5, entry(1))])
    with valkey.client() as client:
        assert len(Streams(client, epoch=2, partitions=3).read(2)) == 1
    assert len(streams.read(1)) == 1


async def test_an_atomic_batch_names_its_partitions_in_each_epoch(
    events: EventLayer, valkey: OwnValkey, streams: Streams
) -> None:
    status = await installed(events, "1:2 2:4")
    group = EntryGroup([(1, entry()), (3, entry())], [1, 3])
    await events.append(status.time_us, None, [group])
    assert [entry.partitions for entry in streams.read(1)] == [(1,), (1,)]
    with valkey.client() as client:
        other = Streams(client, epoch=2, partitions=4)
        assert [entry.partitions for p in (1, 3) for entry in other.read(p)] == [(1, 3), (1, 3)]


async def test_the_entries_of_a_batch_contain_the_count_of_their_stream(
    events: EventLayer, streams: Streams
) -> None:
    status = await installed(events)
    await append(events, [(1, entry())])
    await tick(events, status)
    groups = [
        EntryGroup([(1, entry()), (2, entry()), (3, entry())], [1, 2, 3]),
        EntryGroup([(1, entry())]),
        EntryGroup([(3, entry()), (4, entry())], [3, 4]),
    ]
    await events.append(status.time_us, None, groups)
    assert [entry.number for entry in streams.read(1)] == [None, None, 3, 4, None, 6]
    assert [entry.number for entry in streams.read(0)] == [None, 2, 3]


async def test_nothing_is_appended_before_a_relay_has_set_up_the_streams(
    events: EventLayer, streams: Streams
) -> None:
    status = await events.read_status()
    answer = await events.append(status.time_us, None, [EntryGroup([(1, entry())])])
    assert answer.verdict is AppendVerdict.ABSENT
    assert streams.images() == []


@pytest.mark.parametrize(
    ("age_us", "verdict"),
    [
        (6 * SECOND_US, AppendVerdict.LATE),
        (2 * SECOND_US, AppendVerdict.OK),
        (-60 * SECOND_US, AppendVerdict.AHEAD),
    ],
)
async def test_a_stamp_must_be_from_the_last_five_seconds(
    events: EventLayer, streams: Streams, age_us: int, verdict: AppendVerdict
) -> None:
    status = await installed(events)
    answer = await events.append(status.time_us - age_us, None, [EntryGroup([(1, entry())])])
    assert answer.verdict is verdict
    assert len(streams.images()) == (verdict is AppendVerdict.OK)


async def test_every_call_of_a_relay_with_an_older_token_is_rejected(
    events: EventLayer, streams: Streams
) -> None:
    status = await installed(events)
    assert await tick(events, status, token=8) is AppendVerdict.OK
    assert await tick(events, status, token=7) is AppendVerdict.OUTRUN
    late = await events.append(status.time_us, 7, [EntryGroup([(1, entry())])])
    assert late.verdict is AppendVerdict.OUTRUN
    assert (await events.install(7, "1:4")).verdict is AppendVerdict.OUTRUN
    assert streams.images() == []


async def test_a_relay_of_an_older_installation_cannot_restore_its_streams(
    wire: ValkeyWire,
) -> None:
    await EventLayer(wire, 2).install(1, "1:2")
    before = EventLayer(wire, 1)
    assert (await before.install(9, "1:2")).verdict is AppendVerdict.OUTRUN
    assert (await before.read_status()).random == ""


async def test_a_new_installation_removes_the_streams_of_the_old_one(
    wire: ValkeyWire, valkey: OwnValkey
) -> None:
    old = EventLayer(wire, 1)
    await installed(old)
    await append(old, [(1, entry())])
    await EventLayer(wire, 2).install(2, "1:2")
    with valkey.client() as client:
        assert not client.keys("{rillbase}:events:1:*")


async def test_a_tick_counts_itself_and_everything_before_it(
    events: EventLayer, streams: Streams
) -> None:
    status = await installed(events)
    await append(events, [(1, entry()), (3, entry()), (2, entry())])
    await tick(events, status)
    await append(events, [(1, entry())])
    await tick(events, status)
    assert [entry.count for entry in streams.ticks(1)] == [3, 5]
    assert [entry.count for entry in streams.ticks(0)] == [2, 3]


async def test_a_tick_names_token_incarnation_snapshot_and_valkeys_time(
    events: EventLayer, streams: Streams
) -> None:
    status = await installed(events)
    await tick(events, status, token=4)
    (entry,) = streams.ticks(0)
    assert entry == Tick(4, INCARNATION, SNAPSHOT, entry.time_us, 1)
    assert status.time_us <= entry.time_us <= (await events.read_status()).time_us


async def test_a_tick_for_a_server_that_has_been_emptied_is_rejected(
    events: EventLayer, valkey: OwnValkey
) -> None:
    status = await installed(events)
    with valkey.client() as client:
        client.flushall()
    assert await tick(events, status) is AppendVerdict.ABSENT
    await installed(events)
    assert await tick(events, status) is AppendVerdict.REBORN


async def test_a_tick_for_a_server_that_has_been_restarted_is_rejected(
    events: EventLayer, valkey: OwnValkey
) -> None:
    status = await installed(events)
    valkey.kill()
    valkey.start()
    with pytest.raises(redis.RedisError):
        await tick(events, status)
    await installed(events)
    assert await tick(events, status) is AppendVerdict.REBORN


async def test_the_function_is_loaded_again_after_a_flush(
    events: EventLayer, valkey: OwnValkey, streams: Streams
) -> None:
    await installed(events)
    with valkey.client() as client:
        client.function_flush()
        client.flushall()
    await installed(events)
    await append(events, [(1, entry())])
    assert len(streams.images()) == 1


async def test_streams_are_trimmed_by_bytes_and_their_counts_continue(
    events: EventLayer, streams: Streams
) -> None:
    limit, size, number = 64 * 1024, 1024, 300
    status = await installed(events, retention_bytes=limit)
    for version in range(number):
        await append(events, [(1, entry(version, b"x" * size))])
    await tick(events, status)
    held = len(streams.read(1))
    assert limit // size // 2 < held < limit // size + limit // size // 8
    assert streams.ticks(1)[-1].count == number + 1


async def test_streams_are_trimmed_by_age(
    events: EventLayer, valkey: OwnValkey, streams: Streams
) -> None:
    status = await installed(events, retention_ms=50, retention_bytes=1024)
    for version in range(20):
        await append(events, [(1, entry(version))])
    await asyncio.sleep(0.1)  # Valkey's own time must pass
    await tick(events, status)
    assert [type(entry.content) for entry in streams.read(1)] == [Tick]
    with valkey.client() as client:
        assert client.llen(f"{stream(1, 1, 1)}:trim") <= 1


async def test_a_server_without_memory_rejects_entries_until_streams_are_trimmed(
    events: EventLayer, valkey: OwnValkey, streams: Streams
) -> None:
    await installed(events, retention_ms=50, retention_bytes=64 * 1024)
    await append(events, [(1, entry(version, b"x" * 1024)) for version in range(200)])
    with valkey.client() as client:
        client.config_set("maxmemory", "1mb")
        with pytest.raises(redis.RedisError):
            await append(events, [(1, entry())])
        await asyncio.sleep(0.1)  # Valkey's own time must pass
        await events.trim()
        assert len(streams.read(1)) < 200


async def test_the_streams_of_a_retired_epoch_are_removed(
    events: EventLayer, valkey: OwnValkey
) -> None:
    await installed(events, "1:2 2:3")
    await append(events, [(1, entry()), (2, entry())])
    await installed(events, "2:3")
    with valkey.client() as client:
        assert not client.keys("{rillbase}:events:1:1:*")
        assert client.keys("{rillbase}:events:1:2:*")


async def test_stream_names_reveal_nothing_about_tenants(
    events: EventLayer, valkey: OwnValkey
) -> None:
    await installed(events)
    await append(events, [(1, entry())])
    with valkey.client() as client:
        names = {key.decode() for key in client.keys("*")}
    assert names <= {
        "{rillbase}:events:installation",
        "{rillbase}:events:1:state",
        *(f"{stream(1, 1, p)}{part}" for p in (0, 1) for part in ("", ":count", ":trim")),
    }


async def test_replaced_streams_are_empty_and_count_from_the_time(
    events: EventLayer, valkey: OwnValkey
) -> None:
    before = await installed(events)
    await append(events, [(0, entry())])
    assert (await events.install(1, "1:2", replaced="other")).verdict is AppendVerdict.REBORN
    assert (await events.install(0, "1:2", replaced=before.random)).verdict is AppendVerdict.OUTRUN
    replaced = await events.install(2, "1:1", replaced=before.random)
    assert replaced.verdict is AppendVerdict.OK
    after = await events.read_status()
    assert after.random not in ("", before.random)
    assert (after.epochs, after.cursor) == ("1:1", "")
    with valkey.client() as client:
        assert client.exists(stream(1, 1, 0), stream(1, 1, 1)) == 0
        await append(events, [(0, entry())])
        count = client.hget(f"{stream(1, 1, 0)}:count", "entries")
    assert int(count or 0) == replaced.time_us + 1


async def test_a_tick_stores_where_its_writer_continues(events: EventLayer) -> None:
    status = await installed(events)
    body = encode_tick_body(1, INCARNATION[:16], SNAPSHOT)
    for cursor, stored in (("here", "here"), ("", "here"), ("there", "there")):
        answer = await events.tick(status.time_us, 1, status, INCARNATION[:16], body, cursor)
        assert answer.verdict is AppendVerdict.OK
        assert (await events.read_status()).cursor == stored
