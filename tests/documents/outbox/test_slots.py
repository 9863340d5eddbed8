"""Emptying the outbox's slots loses no row, even if a transaction commits late."""

from __future__ import annotations

from collections.abc import AsyncIterator

import psycopg
import pytest

from documents.outbox.database import OUTBOX_SLOTS
from documents.outbox.rows import OutboxRows, RowSize, cut, progress
from tests.documents.outbox.sql_writer import SqlWriter

MIB = 1024 * 1024


@pytest.fixture
async def rows() -> AsyncIterator[OutboxRows]:
    result = OutboxRows()
    yield result
    await result.close()


@pytest.fixture
def slot(postgres_url: str) -> int:
    """An empty slot far from the current one, with an empty slot before it."""
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        (present,) = admin.execute(
            "SELECT (extract(epoch FROM clock_timestamp())::bigint / 60) % 8"
        ).fetchone() or (0,)
        chosen = (int(present) + OUTBOX_SLOTS // 2) % OUTBOX_SLOTS
        for number in (chosen, (chosen - 1) % OUTBOX_SLOTS):
            admin.execute(f"TRUNCATE documents_outbox_{number}, documents_outboxmark_{number}")
    return chosen


def move(writer: SqlWriter, slot: int) -> int:
    """Write a document as if in the minute of this slot; return its transaction."""
    with writer.transaction() as written:
        written.write(1, b"body")
    with psycopg.connect(writer.url, autocommit=True) as admin:
        admin.execute(
            "UPDATE documents_outbox SET slot = %s WHERE xid = %s::text::xid8",
            (slot, str(written.xid)),
        )
    return written.xid


def mark(writer: SqlWriter, slot: int, xid: int, age_s: int) -> None:
    with psycopg.connect(writer.url, autocommit=True) as admin:
        admin.execute(
            "INSERT INTO documents_outboxmark VALUES "
            "(%s, %s::text::xid8, clock_timestamp() - make_interval(secs => %s))",
            (slot, str(xid), age_s),
        )


def rows_left(writer: SqlWriter) -> int:
    with psycopg.connect(writer.url, autocommit=True) as admin:
        row = admin.execute(
            "SELECT count(*) FROM documents_outbox WHERE collection_id = %s", (writer.collection,)
        ).fetchone()
    return int(row[0]) if row else 0


async def test_a_slot_is_emptied_after_all_of_it_has_been_marked_long_enough(
    rows: OutboxRows, slot: int, postgres_url: str
) -> None:
    writer = SqlWriter(postgres_url)
    first, second = move(writer, slot), move(writer, slot)
    mark(writer, slot, first, age_s=120)
    assert not await rows.empty(slot), "one is not marked"
    mark(writer, slot, second, age_s=30)
    assert not await rows.empty(slot), "one was marked a moment ago"
    mark(writer, slot, second, age_s=61)
    assert await rows.empty(slot)
    assert rows_left(writer) == 0


async def test_a_slot_is_kept_while_a_transaction_may_still_commit_into_it(
    rows: OutboxRows, slot: int, postgres_url: str
) -> None:
    writer = SqlWriter(postgres_url)
    mark(writer, slot, move(writer, slot), age_s=120)
    with psycopg.connect(postgres_url) as late:
        late.execute(
            "INSERT INTO documents_outbox (slot, tenant_id, collection_id, key, key_hash, version, "
            "rules_version) VALUES (%s, gen_random_uuid(), %s, 'late', 1, 1, 1)",
            (slot, writer.collection),
        )
        assert not await rows.empty(slot)
    assert not await rows.empty(slot), "the late one has no mark"
    assert rows_left(writer) == 2


async def test_a_slot_waits_for_the_previous_one_whose_marks_it_contains(
    rows: OutboxRows, slot: int, postgres_url: str
) -> None:
    writer = SqlWriter(postgres_url)
    before = (slot - 1) % OUTBOX_SLOTS
    mark(writer, slot, move(writer, slot), age_s=120)
    mark(writer, slot, move(writer, before), age_s=100)
    assert not await rows.empty(slot)
    assert await rows.empty(before)
    assert await rows.empty(slot)


def sizes(*listed: tuple[int, int, bool]) -> list[RowSize]:
    return [
        RowSize(xid, number, size, batch) for number, (xid, size, batch) in enumerate(listed, 1)
    ]


def test_a_page_ends_before_it_grows_too_large_but_never_inside_a_batch() -> None:
    listed = sizes((1, MIB, False), (1, 4 * MIB, False), (2, MIB, True), (2, 5 * MIB, True))
    assert [size.id for size in cut(listed, all_listed=True)] == [1]
    assert [size.id for size in cut(listed[1:], all_listed=True)] == [2]
    assert [size.id for size in cut(listed[2:], all_listed=True)] == [3, 4]


def test_a_page_has_no_part_of_a_batch_that_may_continue_after_it() -> None:
    listed = sizes((1, 1, False), (2, 1, True), (2, 1, True))
    assert [size.id for size in cut(listed, all_listed=False)] == [1]
    assert [size.id for size in cut(listed, all_listed=True)] == [1, 2, 3]


def test_one_document_larger_than_a_page_is_a_page() -> None:
    assert len(cut(sizes((1, 16 * MIB, False), (1, 1, False)), all_listed=True)) == 1


def test_a_batch_too_large_for_one_call_is_split() -> None:
    assert len(cut(sizes(*[(1, 16 * MIB, True)] * 3), all_listed=True)) == 1


def test_a_transaction_is_done_when_its_last_row_was_read() -> None:
    listed = sizes((1, 1, False), (1, 1, False), (2, 1, False))
    assert progress([1, 2, 3], listed, listed, all_listed=True) == ((1, 2, 3), 0)
    assert progress([1, 2, 3], listed, listed[:1], all_listed=True) == ((3,), 1)
    assert progress([1, 2, 3], listed, listed[:2], all_listed=True) == ((1, 3), 0)
    assert progress([1, 2, 3], listed, listed, all_listed=False) == ((1,), 3)
