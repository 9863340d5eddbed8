"""The relay's requests to PostgreSQL and the event layer, and their replies.

The relay itself (`documents.outbox.machine`) does no input or output: it emits these requests and
receives the replies. `documents.outbox.loop` executes them; the simulator does it in memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from documents.outbox.entries import TransactionSnapshot
from documents.outbox.events import AppendResult, EntryGroup, EventLayerStatus


@dataclass(frozen=True, slots=True)
class InstallationState:
    """The state of the event layer and of the database, as recorded in PostgreSQL."""

    #: The installation epoch.
    installation: int
    #: The current epochs of the grid, "number:partitions number:partitions@tenant …".
    epochs: str
    #: The incarnation of the database: cluster, timeline, and the time between two crashes.
    database: str


@dataclass(frozen=True, slots=True)
class AcquireLease:
    """Take the lease if it is free."""


@dataclass(frozen=True, slots=True)
class LeaseResult:
    #: None: another relay holds it.
    token: int | None
    state: InstallationState


@dataclass(frozen=True, slots=True)
class ProbeEventLayer:
    """Read the time and the run id of the event layer."""

    installation: int


@dataclass(frozen=True, slots=True)
class ProbeResult:
    status: EventLayerStatus


@dataclass(frozen=True, slots=True)
class Install:
    """Initialise the event layer, or update its grid epochs."""

    installation: int
    token: int
    epochs: str


@dataclass(frozen=True, slots=True)
class ListRows:
    """Find transactions in the outbox from `watermark` on: the unmarked ones, or all."""

    token: int
    watermark: int
    marked_too: bool
    #: Whether to renew the lease.
    renew: bool


@dataclass(frozen=True, slots=True)
class RowList:
    #: Whether the lease is still held under this token.
    lease_held: bool
    state: InstallationState
    #: The statement's snapshot, and the transactions that it saw, each with its number of rows.
    snapshot: TransactionSnapshot
    rows: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Fetch:
    """Read the rows of these transactions, in order, starting after row `after` of the first."""

    xids: tuple[int, ...]
    after: int


@dataclass(frozen=True, slots=True)
class FetchResult:
    """As many rows as fit into one call, and at least one if there is any."""

    groups: Sequence[EntryGroup]
    #: Transactions whose rows have all been read.
    done: tuple[int, ...]
    #: The last row that was read of the first incomplete transaction; 0: none.
    after: int
    #: Transactions that have rewritten documents of these rows, as far as they have committed.
    newer: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Append:
    installation: int
    stamp_us: int
    token: int
    groups: Sequence[EntryGroup]


@dataclass(frozen=True, slots=True)
class MarkPublished:
    """Record that these transactions have been published."""

    xids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SendTick:
    installation: int
    stamp_us: int
    token: int
    status: EventLayerStatus
    incarnation: bytes
    snapshot: TransactionSnapshot


@dataclass(frozen=True, slots=True)
class Trim:
    """Make room in the event layer."""

    installation: int


@dataclass(frozen=True, slots=True)
class EmptySlot:
    """Empty a slot of the outbox if all of its rows were marked long enough ago."""

    slot: int


@dataclass(frozen=True, slots=True)
class RequestDone:
    """A request without a result has succeeded."""


@dataclass(frozen=True, slots=True)
class RequestFailed:
    """A request failed, or its outcome is unknown."""


Request = (
    AcquireLease
    | ProbeEventLayer
    | Install
    | ListRows
    | Fetch
    | Append
    | MarkPublished
    | SendTick
    | Trim
    | EmptySlot
)
Reply = (
    LeaseResult | ProbeResult | RowList | FetchResult | AppendResult | RequestDone | RequestFailed
)
