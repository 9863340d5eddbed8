"""Requeues dead letters."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from foundation.models import DeadLetter, OutboxTask
from foundation.tasks.outbox import run_after_commit


class AlreadyRequeued(RuntimeError):
    """The dead letter was requeued before; if the task failed again, there is a newer letter."""


def requeue(dead_letter: DeadLetter, *, using: str = "staff") -> OutboxTask:
    """Run a dead letter's task again, with all its attempts, under a new id."""
    with transaction.atomic(using=using):
        claimed = (
            DeadLetter.objects.using(using)
            .filter(pk=dead_letter.pk, requeued_at=None)
            .update(requeued_at=timezone.now())
        )
        if not claimed:
            raise AlreadyRequeued(f"dead letter {dead_letter.pk} has already been requeued")
        return run_after_commit(
            dead_letter.name, dead_letter.arguments, tenant_id=dead_letter.tenant_id, using=using
        )
