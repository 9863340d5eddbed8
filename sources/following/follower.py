"""Follows one source: check the table, copy it if needed, then apply its commits.

Each round ends with an exception that determines the next one: another copy, a pause until the
database is reachable, a halt until the owner changes something, or no further round if another
process follows the source. Recovery from any failure checks everything again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Coroutine

import psycopg
from django.db import DatabaseError, connections

from documents.collections.actions import has_documents
from foundation import failures, metrics
from foundation.errors import ApiError, StorageFull, Unavailable
from foundation.scope import scoped
from sources.conditions import CopyRequired, SourceUnsuitable, of_error
from sources.connection import addresses, conninfo, is_internal, unseal_target
from sources.following import fair_share
from sources.following.copy import TableCopy, TableSnapshot
from sources.following.net_changes import SourceDiverged
from sources.following.progress import DocumentRefused, FollowerFenced, SourceProgress
from sources.following.stream import WATCH_S, ReplicationStream
from sources.following.upkeep import (
    check_slot,
    check_types,
    drop_slot,
    drop_slots_with_readers,
    keep_within_bounds,
    shape_text,
    table_spec_of,
)
from sources.models import Source
from sources.upstream import slot as slots
from sources.upstream.catalog import LOOK_TIMEOUT_S, SourceTable, read_table
from sources.upstream.session import session
from sources.upstream.wire import ReplicationWire, replication
from tenants import error_log

logger = logging.getLogger(__name__)

State = Source.State
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0
#: A stream that lasted this long counts as successful.
STEADY_S = 5.0
#: How often a halted source is checked again.
HALTED_S = 15.0
#: Errors of an unreachable server, Rillbase's or the upstream one.
_UNAVAILABLE = (psycopg.Error, DatabaseError, OSError)
#: SQLSTATEs of a slot that is missing or unusable.
_SLOT_GONE = frozenset({"42704", "55000"})
_SLOT_IN_USE = "55006"
#: Conditions under which PostgreSQL rejects the owner's updates and deletes while the table is
#: published, since it does not identify changed rows.
_HOLDS_UP_WRITERS = frozenset({"no_key", "replica_identity"})


class Follower:
    """Follows one source until it is cancelled."""

    def __init__(self, row: Source) -> None:
        self.source_id = row.pk
        self.row = row
        self._pause_s = FIRST_PAUSE_S
        #: Whether the owner sees failures of the server without details.
        self._is_internal = True
        #: Why the next round starts with a copy.
        self._copy_reason = ""

    async def run(self) -> None:
        """Run rounds until cancelled."""
        while True:
            try:
                await self._attempt()
            except FollowerFenced:
                return
            except (*_UNAVAILABLE, ApiError) as error:
                # Rillbase's database is unreachable, or the upstream one was while its slot was
                # checked. The status cannot be recorded.
                logger.warning("a source is waiting: %s", type(error).__name__)
                await self._back_off()
            except Exception:
                # Reporting the status and maintaining the slot can fail, too.
                logger.exception("a source failed", extra={"source": str(self.source_id)})
                await self._back_off()

    async def _attempt(self) -> None:
        progress = await SourceProgress.acquire(self.source_id)
        self.row = progress.row
        try:
            await self._live(progress)
        except CopyRequired as error:
            await self._copy_again(error.reason)
        except SourceDiverged:
            await self._copy_again("diverged")
        except SourceUnsuitable as unfit:
            await self._halt(progress, unfit.code, unfit.detail)
        except DocumentRefused as error:
            detail = error.error.detail or error.error.title
            await self._halt(progress, "document_refused", f"{error.error.code}: {detail}")
        except FollowerFenced:
            raise
        except ApiError as error:
            await self._wait(progress, _condition(error), error.detail or error.title)
        except (psycopg.Error, OSError) as error:
            full = failures.transient_error(error) if isinstance(error, OSError) else None
            problem = (full.code, full.detail) if full else self._of_error(error)
            await self._wait(progress, *problem)
        except Exception:
            logger.exception("a source failed", extra={"source": str(self.source_id)})
            await self._wait(progress, "internal", "Something went wrong on our side.")

    def _of_error(self, error: psycopg.Error | OSError) -> tuple[str, str]:
        return of_error(error, is_internal=self._is_internal)

    async def _copy_again(self, reason: str) -> None:
        self._copy_reason = reason
        await self._back_off()

    async def _halt(self, progress: SourceProgress, code: str, detail: str) -> None:
        """Report the condition, and check again later."""
        if progress.row.condition != code:
            error_log.note(
                progress.row.tenant_id,
                error_log.Area.SOURCE,
                "source_halted",
                place=progress.row.collection_name,
                detail=f"{code}: {detail}",
            )
        await progress.report_state(State.HALTED, code, detail)
        with contextlib.suppress(SourceUnsuitable):  # the next check reports the condition
            await self._maintain_slot(progress, code)
        await asyncio.sleep(HALTED_S)

    async def _maintain_slot(self, progress: SourceProgress, code: str) -> None:
        async with (
            asyncio.timeout(LOOK_TIMEOUT_S),
            session(await info_of(progress.row)) as connection,
        ):
            if code in _HOLDS_UP_WRITERS:
                await drop_slot(connection, progress, code)
            await keep_within_bounds(connection, progress)

    async def _wait(self, progress: SourceProgress, code: str, detail: str) -> None:
        await progress.report_state(State.WAITING, code, detail)
        await self._back_off()

    async def _back_off(self) -> None:
        """Wait, with exponential backoff."""
        await asyncio.sleep(self._pause_s * random.uniform(0.5, 1.0))  # noqa: S311 -- jitter
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)

    async def _live(self, progress: SourceProgress) -> None:
        """Follow from the current position until an exception is raised."""
        row = progress.row
        self._is_internal = True
        info = await info_of(row)
        self._is_internal = is_internal(info)
        async with contextlib.AsyncExitStack() as stack:
            connection = await stack.enter_async_context(session(info))
            table = await self._table(progress, connection)
            wire = await stack.enter_async_context(replication(info))
            system = await wire.system()
            reason = await self._reason_to_copy(progress, connection, table, system)
            if reason:
                await self._copy(progress, table, info, wire, (reason, system))
            await self._start(progress, connection, wire)
            started_s = time.monotonic()
            try:
                await ReplicationStream(progress, table, connection, wire).run()
            finally:
                # Reset the backoff only after a steady stream: the server may end each one at once.
                if time.monotonic() - started_s > STEADY_S:
                    self._pause_s = FIRST_PAUSE_S

    async def _table(
        self, progress: SourceProgress, connection: psycopg.AsyncConnection
    ) -> SourceTable:
        """Look up the table."""
        table = await read_table(connection, table_spec_of(progress.row))
        check_types(progress.row.shape, table)
        return table

    async def _reason_to_copy(
        self,
        progress: SourceProgress,
        connection: psycopg.AsyncConnection,
        table: SourceTable,
        system: str,
    ) -> str:
        """Return why the table has to be copied; empty: not needed."""
        row, reason, self._copy_reason = progress.row, self._copy_reason, ""
        if reason:
            return reason
        if not row.generation:
            return row.copy_reason if row.copies_done else "new"
        if row.copies_done != row.copies_wanted:
            return "asked_for"
        if not row.is_copied:
            return row.copy_reason
        if row.system != system:
            return "another_server"
        if row.shape != shape_text(table):
            return "table_changed"
        state = await slots.slot_state(connection, slots.slot_name(row.pk, row.generation))
        if state is None or state.is_lost:
            return "slot_lost"
        if state.confirmed > progress.position.confirmed:
            return "slot_moved"
        published = await slots.is_published(connection, row.pk, table.oid)
        return "" if published else "publication_changed"

    async def _copy(
        self,
        progress: SourceProgress,
        table: SourceTable,
        info: str,
        wire: ReplicationWire,
        reason_and_system: tuple[str, str],
    ) -> None:
        """Create a slot, and make the documents match the table as of its start."""
        row = progress.row
        wanted_copies = row.copies_wanted
        reason, system = reason_and_system
        metrics.SOURCE_COPIES.labels(reason).inc()
        await progress.report_state(State.STARTING if reason == "new" else State.COPYING, "", "")
        async with session(info) as connection:
            await drop_slots_with_readers(connection, row)
            await slots.publish(connection, row.pk, table_spec_of(row))
            generation = row.generation + 1
            slot = await wire.create_slot(slots.slot_name(row.pk, generation))
            await progress.begin_copy(
                {
                    "generation": generation,
                    "copy_reason": reason,
                    "shape": shape_text(table),
                    "system": system,
                    "state": State.COPYING,
                },
                slot.starts_at,
            )
            snapshot = TableSnapshot(connection, table_spec_of(row), table)
            await snapshot.begin(slot.snapshot)
            copy = TableCopy(progress, snapshot, was_empty=await asyncio.to_thread(_is_empty, row))
            copy_task = fair_share.sources.metered(row.pk, copy.run())
            await _while_watched(copy_task, progress, info)
            await snapshot.end()
        await progress.note(is_copied=True, copies_done=wanted_copies)

    async def _start(
        self, progress: SourceProgress, connection: psycopg.AsyncConnection, wire: ReplicationWire
    ) -> None:
        row = progress.row
        slot = slots.slot_name(row.pk, row.generation)
        try:
            await wire.start(slot, progress.position.confirmed, slots.publication_name(row.pk))
        except psycopg.Error as error:
            if error.sqlstate == _SLOT_IN_USE:
                await slots.stop_reader(connection, slot)
            if error.sqlstate in _SLOT_GONE:
                raise CopyRequired("slot_lost") from error
            raise


def _condition(error: ApiError) -> str:
    """Return the condition of a source waiting for its server, or for this installation."""
    return error.code if isinstance(error, StorageFull | Unavailable) else "unreachable"


async def info_of(row: Source) -> str:
    """Return the conninfo, if its addresses are currently allowed."""
    target = await asyncio.to_thread(unseal_target, bytes(row.sealed_connection), row.pk)
    return conninfo(target, await asyncio.to_thread(addresses, target))


async def _while_watched(
    work: Coroutine[None, None, None], progress: SourceProgress, info: str
) -> None:
    """Run long work as long as the slot stays within its limit."""
    async with session(info) as connection:
        task = asyncio.create_task(work)
        try:
            while not (await asyncio.wait([task], timeout=WATCH_S))[0]:
                await check_slot(connection, progress, None)
            task.result()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def _is_empty(row: Source) -> bool:
    try:
        with scoped(tenant_id=row.tenant_id):
            return not has_documents(row.collection_id)
    finally:
        connections["default"].close()
