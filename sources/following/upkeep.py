"""Maintains the slot and publication of a source in its owner's database.

They are checked periodically, and dropped when they are no longer needed, so that the owner's disk
does not fill up and no writes are blocked.
"""

from __future__ import annotations

import asyncio
import json

import psycopg
from django.utils import timezone

from foundation.environment import environment
from sources.conditions import CopyRequired, SourceUnsuitable
from sources.following.progress import SourceProgress
from sources.models import Source
from sources.upstream import slot as slots
from sources.upstream.catalog import SourceTable, TableSpec, read_table

#: A terminated reader takes a moment to exit.
DROP_ATTEMPTS, DROP_PAUSE_S = 50, 0.1


def table_spec_of(row: Source) -> TableSpec:
    """Return the owner's specification of the table."""
    columns = None if row.columns is None else tuple(row.columns)
    return TableSpec(row.schema_name, row.table_name, tuple(row.key), columns)


def shape_text(table: SourceTable) -> str:
    """Return a text that changes if rows would be converted differently."""
    shape = table.shape
    columns = [[c.name, c.type_oid, c.type_modifier] for c in shape.columns]
    return json.dumps([table.oid, columns, list(shape.key), table.columns])


def check_types(old_shape: str, table: SourceTable) -> None:
    """Reject a column whose type changed: the owner must decide how to convert its documents."""
    if not old_shape:
        return
    old_types = {name: oid for name, oid, _ in json.loads(old_shape)[1]}
    for column in table.shape.columns:
        if old_types.get(column.name, column.type_oid) != column.type_oid:
            raise SourceUnsuitable(
                "type_changed",
                f"The type of the column {column.name} has changed. Request a rebuild to "
                "convert the documents.",
            )


async def drop_slots_with_readers(connection: psycopg.AsyncConnection, row: Source) -> None:
    """Drop the slots of a source, even if they are still being read."""
    await slots.stop_reader(connection, slots.slot_name(row.pk, row.generation))
    for attempt in range(DROP_ATTEMPTS):
        try:
            await slots.drop_slots(connection, row.pk)
        except psycopg.errors.ObjectInUse:
            if attempt == DROP_ATTEMPTS - 1:
                raise
            await asyncio.sleep(DROP_PAUSE_S)
        else:
            return


async def drop_upstream(connection: psycopg.AsyncConnection, row: Source) -> None:
    """Drop everything that a source created in its owner's database."""
    await drop_slots_with_readers(connection, row)
    await slots.unpublish(connection, row.pk)


async def check_table(connection: psycopg.AsyncConnection, row: Source, table: SourceTable) -> None:
    """Raise if the table or its publication has changed."""
    current = await read_table(connection, table_spec_of(row))
    check_types(row.shape, current)
    if shape_text(current) != shape_text(table):
        raise CopyRequired("table_changed")
    if not await slots.is_published(connection, row.pk, table.oid):
        raise CopyRequired("publication_changed")


async def check_slot(
    connection: psycopg.AsyncConnection, progress: SourceProgress, lag_ms: int | None
) -> None:
    """Record the state of a slot.

    A slot that retains more than its limit is dropped, to protect the owner's disk.
    """
    row = progress.row
    state = await slots.slot_state(connection, slots.slot_name(row.pk, row.generation))
    if state is None or state.is_lost:
        raise CopyRequired("slot_lost")
    await progress.note(
        slot_bytes=state.kept_bytes,
        lag_bytes=state.lag_bytes,
        lag_ms=lag_ms,
        seen_at=timezone.now(),
    )
    if state.kept_bytes > environment().rillbase_source_slot_bytes:
        raise CopyRequired("slot_too_large")


async def keep_within_bounds(connection: psycopg.AsyncConnection, progress: SourceProgress) -> None:
    """Maintain the slot of a source that is not being followed."""
    row = progress.row
    if not row.generation:
        return
    try:
        await check_slot(connection, progress, None)
    except CopyRequired as error:
        await drop_slot(connection, progress, error.reason)


async def drop_slot(
    connection: psycopg.AsyncConnection, progress: SourceProgress, reason: str
) -> None:
    """Drop slot and publication. When the source resumes, it starts with a copy."""
    await drop_upstream(connection, progress.row)
    await progress.note(
        generation=0, is_copied=False, copy_reason=reason, slot_bytes=None, lag_bytes=None
    )
