"""What a source creates in its owner's database: a publication and a slot."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from psycopg import AsyncConnection, sql

from sources.upstream.catalog import TableSpec
from sources.upstream.lsn import parse_lsn

_STATE = (
    "SELECT confirmed_flush_lsn::text, wal_status, "
    "pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::bigint, "
    "pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn)::bigint "
    "FROM pg_replication_slots WHERE slot_name = %s AND database = current_database()"
)
_PUBLICATION = (
    "SELECT p.pubinsert AND p.pubupdate AND p.pubdelete AND p.pubtruncate AND p.pubviaroot "
    "AND NOT p.puballtables, "
    "array(SELECT r.prrelid::bigint FROM pg_publication_rel r WHERE r.prpubid = p.oid "
    "{}) FROM pg_publication p WHERE p.pubname = %s"
)
#: Row filters and column lists exist in version 15 and later.
_UNFILTERED = "AND r.prqual IS NULL AND r.prattrs IS NULL"
_VERSION_WITH_FILTERS = 150_000
_STOP = (
    "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots "
    "WHERE slot_name = %s AND active_pid IS NOT NULL"
)
_SLOTS = (
    "SELECT slot_name FROM pg_replication_slots "
    "WHERE starts_with(slot_name, %s) AND database = current_database()"
)
_OF = "FROM pg_replication_slots WHERE slot_name LIKE '{}_%'"
_DROP = "SELECT pg_drop_replication_slot(%s)"


def publication_name(source: UUID) -> str:
    return f"rillbase_{source.hex}"


def slot_name(source: UUID, generation: int) -> str:
    return f"{publication_name(source)}_{generation}"


def statements_that_drop(source: UUID) -> list[str]:
    """Return the statements that an owner runs by hand to remove all traces of a source."""
    name = publication_name(source)
    slots = f"SELECT pg_drop_replication_slot(slot_name) {_OF.format(name)}"
    return [f"{slots};", f"DROP PUBLICATION IF EXISTS {name};"]


@dataclass(frozen=True, slots=True)
class SlotState:
    """The state of a slot."""

    confirmed: int
    is_lost: bool
    #: How much log the slot makes the server retain, and how much has not been confirmed.
    kept_bytes: int
    lag_bytes: int


async def slot_state(connection: AsyncConnection, slot: str) -> SlotState | None:
    """Return the state of a slot; None: it does not exist."""
    row = await (await connection.execute(_STATE, (slot,))).fetchone()
    if row is None:
        return None
    confirmed, status, kept_bytes, lag = row
    is_lost = status == "lost" or confirmed is None
    return SlotState(
        parse_lsn(confirmed or "0/0"), is_lost, max(0, kept_bytes or 0), max(0, lag or 0)
    )


async def is_published(connection: AsyncConnection, source: UUID, table: int) -> bool:
    """Return whether the publication covers this table completely, and no other."""
    may_be_filtered = connection.info.server_version >= _VERSION_WITH_FILTERS
    query = _PUBLICATION.format(_UNFILTERED if may_be_filtered else "")
    row = await (await connection.execute(query, (publication_name(source),))).fetchone()
    return row is not None and bool(row[0]) and row[1] == [table]


async def publish(connection: AsyncConnection, source: UUID, spec: TableSpec) -> None:
    """Recreate the publication."""
    name = sql.Identifier(publication_name(source))
    await connection.execute(sql.SQL("DROP PUBLICATION IF EXISTS {}").format(name))
    await connection.execute(
        sql.SQL(
            "CREATE PUBLICATION {} FOR TABLE {} WITH "
            "(publish = 'insert, update, delete, truncate', publish_via_partition_root = true)"
        ).format(name, sql.Identifier(spec.schema, spec.table))
    )


async def stop_reader(connection: AsyncConnection, slot: str) -> None:
    """Terminate a slot's reader: a stale connection of ours that the server has not closed yet."""
    await connection.execute(_STOP, (slot,))


async def drop_slots(connection: AsyncConnection, source: UUID) -> None:
    """Drop every slot of a source that has no reader."""
    rows = await (await connection.execute(_SLOTS, (f"{publication_name(source)}_",))).fetchall()
    for (name,) in rows:
        await connection.execute(_DROP, (name,))


async def unpublish(connection: AsyncConnection, source: UUID) -> None:
    """Drop the publication."""
    name = sql.Identifier(publication_name(source))
    await connection.execute(sql.SQL("DROP PUBLICATION IF EXISTS {}").format(name))
