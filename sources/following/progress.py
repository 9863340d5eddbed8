"""The progress of a source, stored in its row.

The position is written in the transaction of the documents and under the fence of the current
follower: if the fence has changed, the transaction fails. The status for display is written
separately, and updates of it may be lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from uuid import UUID

import psycopg
from django.db.models import F
from django.utils import timezone

from documents.store.group import run_group
from documents.store.write import NO_OPERATIONS, WriteCall
from foundation import failures
from foundation.errors import ApiError, CollectionReadOnly, NotFound
from foundation.postgres import Statement
from foundation.postgres.session import Oid, Step, int8
from rillbase_native import Operations
from sources.following.net_changes import SourceDiverged
from sources.following.rows import ALIAS, on_rows
from sources.models import Source

#: Divides by zero if another fence is in force, which aborts the transaction.
_MOVE = Statement(
    "WITH moved AS (UPDATE sources_source SET confirmed = $3, part_of = $4, part = $5 "
    "WHERE id = $1 AND fence = $2 AND wish = 'running' RETURNING 1) "
    "SELECT 1 / count(*) FROM moved",
    (Oid.UUID, Oid.INT8, Oid.INT8, Oid.INT8, Oid.INT8),
)


class FollowerFenced(Exception):
    """Another process holds the lease of the source, or the source was stopped."""


class DocumentRefused(Exception):
    """The collection rejects the document of a row."""

    def __init__(self, error: ApiError) -> None:
        super().__init__(error.detail or error.title)
        self.error = error


@dataclass(frozen=True, slots=True)
class LogPosition:
    """The position in the server's log up to which changes are applied."""

    confirmed: int
    #: For a large transaction that is being applied: its commit position, and the changes applied
    #: so far.
    part_of: int = 0
    part: int = 0


class SourceProgress:
    """Progress under one holding of a source's fence."""

    def __init__(self, row: Source) -> None:
        self.row = row
        self.position = LogPosition(row.confirmed, row.part_of, row.part)

    @classmethod
    async def acquire(cls, source_id: UUID) -> SourceProgress:
        """Increment the fence, and read the progress."""
        return cls(await on_rows(partial(_acquire, source_id)))

    async def write(self, operations: Operations | None, position: LogPosition) -> None:
        """Write documents and their log position atomically."""
        row = self.row
        call = WriteCall(
            row.tenant_id,
            row.collection_name,
            NO_OPERATIONS if operations is None else operations,
            also=lambda _: [self._move(position)],
            source_id=row.pk,
        )
        try:
            (ended,) = await run_group(row.tenant_id, [call])
        except psycopg.errors.DivisionByZero:
            raise FollowerFenced from None
        except psycopg.Error as error:
            # An error of Rillbase's database, not of the owner's.
            raise failures.transient_error(error) or error from error
        if isinstance(ended, (CollectionReadOnly, NotFound)) and operations is not None:
            raise _as_exception(ended)
        if isinstance(ended, ApiError):
            raise DocumentRefused(ended)
        self.position = position

    def _move(self, position: LogPosition) -> Step:
        row = self.row
        numbers = (row.fence, position.confirmed, position.part_of, position.part)
        return _MOVE, (row.pk.bytes, *map(int8, numbers))

    async def confirm(self, lsn: int) -> None:
        """Record that the log up to this position holds no further change of the table."""
        await self.write(None, replace(self.position, confirmed=lsn))

    async def begin_copy(self, values: Mapping[str, object], starts_at: int) -> None:
        """Record that a copy has begun, which will represent this position."""
        await self.note(
            **values, is_copied=False, confirmed=starts_at, part_of=0, part=0, rows_copied=0
        )
        self.position = LogPosition(starts_at)

    async def note(self, **values: object) -> None:
        """Update the row, as long as the fence is in force."""
        if not await on_rows(partial(_note, self.row, values)):
            raise FollowerFenced
        for name, value in values.items():
            setattr(self.row, name, value)

    async def report_state(self, state: str, condition: str = "", detail: str = "") -> None:
        """Update the status."""
        row = self.row
        if (row.state, row.condition, row.detail) == (state, condition, detail):
            return
        since = row.condition_since if row.condition == condition else timezone.now()
        await self.note(
            state=state,
            condition=condition,
            detail=detail[:500],
            condition_since=since if condition else None,
        )


def _as_exception(error: ApiError) -> Exception:
    """Map a missing collection, another source or a missing document to its exception."""
    return (
        FollowerFenced() if isinstance(error, CollectionReadOnly) else SourceDiverged(error.detail)
    )


def _acquire(source_id: UUID) -> Source:
    rows = Source.unscoped.using(ALIAS).filter(pk=source_id)
    if not rows.exclude(desired_state=Source.DesiredState.REMOVED).update(fence=F("fence") + 1):
        raise FollowerFenced
    return rows.get()


def _note(row: Source, values: Mapping[str, object]) -> bool:
    rows = Source.unscoped.using(ALIAS).filter(pk=row.pk, fence=row.fence)
    return bool(rows.update(**values))
