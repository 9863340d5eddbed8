"""Common tables: idempotency records, the progress of calls, the task outbox and dead letters.

`tenant_id` is a plain column here, since this package knows no tenant model; the row-level
security policies use it all the same.
"""

from __future__ import annotations

from django.db import models

from foundation.ids import uuid7


class IdempotencyRecord(models.Model):
    """The first response to a mutating call, kept for a day under the caller's key."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant_id = models.UUIDField(null=True)
    user_id = models.UUIDField(null=True)
    #: SHA-256 over principal, method, route with its arguments, and the caller's key.
    key_hash = models.BinaryField(unique=True, max_length=32)
    #: SHA-256 of the request's body and everything else that determines the response.
    request_hash = models.BinaryField(max_length=32)
    status = models.PositiveSmallIntegerField()
    headers = models.JSONField(default=dict)
    #: The response as it was sent, with secrets replaced by null.
    body = models.BinaryField()
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)


class CallProgress(models.Model):
    """How far a mutating call with an idempotency key has got that takes several transactions.

    Each of them replaces the row that the previous one left, so a call that is repeated while it
    runs, or after a crash, continues where the last transaction ended. The last one deletes the
    row and adds the call's `IdempotencyRecord`.
    """

    #: As in `IdempotencyRecord`.
    key_hash = models.BinaryField(primary_key=True, max_length=32)
    request_hash = models.BinaryField(max_length=32)
    tenant_id = models.UUIDField()
    #: What the call needs to continue.
    state = models.BinaryField()
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)


class OutboxTask(models.Model):
    """A background task that has not ended.

    The row is written in the transaction whose effect it is, and removed once the task has ended:
    a crash, an absent broker or one that loses its data delays tasks but loses none.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant_id = models.UUIDField(null=True)
    name = models.CharField(max_length=200)
    arguments = models.JSONField(default=dict)
    queue = models.CharField(max_length=40, default="default")
    #: The request that created the task, for log lines.
    request_id = models.CharField(max_length=64, default="", db_default="")
    attempt = models.PositiveSmallIntegerField(default=1, db_default=1)
    #: Not sent before this time.
    due_at = models.DateTimeField()
    #: The state of the broker's data (`Broker.data_id`) to which the task was handed over; empty
    #: while it waits for that.
    handed_to = models.CharField(max_length=100, default="", db_default="", blank=True)
    handed_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [
            models.Index(
                fields=["due_at"], name="outbox_task_waiting", condition=models.Q(handed_to="")
            ),
        ]


class DeadLetter(models.Model):
    """A task that failed permanently, kept so that staff can inspect it and run it again."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant_id = models.UUIDField(null=True)
    task_id = models.CharField(max_length=100, unique=True)
    name = models.CharField(max_length=200)
    arguments = models.JSONField(default=dict)
    error = models.TextField()
    attempts = models.PositiveIntegerField(default=1)
    failed_at = models.DateTimeField(auto_now_add=True, db_index=True)
    requeued_at = models.DateTimeField(null=True, blank=True)
