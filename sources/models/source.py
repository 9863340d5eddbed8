"""An upstream table whose rows become a collection's documents."""

from __future__ import annotations

import datetime

from django.db import models

from foundation.resource import Resource
from foundation.scope import TenantOwned
from tenants.models import Tenant

#: How long an unreachable database delays the removal of a source.
GIVEN_UP_AFTER = datetime.timedelta(days=1)


class Source(TenantOwned, Resource):
    """One table of a tenant's own PostgreSQL, and the progress of its collection.

    Members set the configuration; the follower writes the other fields, which do not change the
    row's version. A follower first increments `fence`. Each write of documents advances `confirmed`
    in the same transaction, which fails unless the fence is current. So every transaction of the
    table is applied exactly once, even if processes are killed or two of them follow.
    """

    class DesiredState(models.TextChoices):
        RUNNING = "running"
        PAUSED = "paused"
        #: Slot and publication are to be dropped, then the row is deleted.
        REMOVED = "removed"

    class State(models.TextChoices):
        #: No process follows it yet, or its slot waits for running transactions.
        STARTING = "starting"
        #: The table is being compared with the documents; differences are written.
        COPYING = "copying"
        #: Documents reflect the table with a short delay.
        LIVE = "live"
        PAUSED = "paused"
        #: The database is unreachable; retried automatically.
        WAITING = "waiting"
        #: The owner has to change something; `condition` is the reason.
        HALTED = "halted"
        #: What it created in its owner's database is being dropped; then the row is deleted.
        REMOVING = "removing"

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="sources")
    #: Not a foreign key: a collection is deleted with its documents, in batches.
    collection_id = models.UUIDField(db_index=True)
    collection_name = models.CharField(max_length=63)
    sealed_connection = models.BinaryField()
    #: The connection URL for display, without its password.
    connection = models.TextField()
    schema_name = models.CharField(max_length=63)
    table_name = models.CharField(max_length=63)
    #: Columns that form a document's key.
    key = models.JSONField()
    #: Columns that documents contain; null: all of them.
    columns = models.JSONField(null=True)
    desired_state = models.CharField(
        max_length=10,
        choices=DesiredState.choices,
        default=DesiredState.RUNNING,
        db_column="wish",
    )
    #: Incremented by each request for another copy.
    copies_wanted = models.PositiveIntegerField(default=1)

    #: The request that the current copy serves, and whether it is complete.
    copies_done = models.PositiveIntegerField(default=0)
    is_copied = models.BooleanField(default=False)
    #: The slot's number, new for each copy; 0: no slot.
    generation = models.PositiveIntegerField(default=0)
    fence = models.BigIntegerField(default=0)
    #: The columns and types that documents were built from, and the server; empty: any.
    shape = models.TextField(blank=True)
    system = models.CharField(max_length=40, blank=True)
    #: The position in the server's log up to which everything has been applied.
    confirmed = models.BigIntegerField(default=0)
    #: For a large transaction that is applied in parts: its commit position, and how many of its
    #: changes have been applied.
    part_of = models.BigIntegerField(default=0)
    part = models.BigIntegerField(default=0)

    state = models.CharField(max_length=10, choices=State.choices, default=State.STARTING)
    condition = models.CharField(max_length=40, blank=True)
    detail = models.TextField(blank=True)
    condition_since = models.DateTimeField(null=True)
    #: When the removal began.
    removing_since = models.DateTimeField(null=True)
    #: Why the last copy was started.
    copy_reason = models.CharField(max_length=40, blank=True)
    rows_copied = models.BigIntegerField(default=0)
    #: How much log the slot makes the server retain, and how much has not been applied.
    slot_bytes = models.BigIntegerField(null=True)
    lag_bytes = models.BigIntegerField(null=True)
    lag_ms = models.BigIntegerField(null=True)
    seen_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["collection_id"],
                condition=~models.Q(desired_state="removed"),
                name="source_collection_unique",
            )
        ]

    @property
    def removing_until(self) -> datetime.datetime | None:
        """The deadline for removing it from its owner's database; None: it is not being removed."""
        return None if self.removing_since is None else self.removing_since + GIVEN_UP_AFTER

    def __str__(self) -> str:
        return f"{self.collection_name} from {self.schema_name}.{self.table_name}"
