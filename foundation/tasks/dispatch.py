"""From the outbox to the broker, by any number of processes at once.

Rows are claimed by `FOR UPDATE SKIP LOCKED`: two dispatchers never hold the same row, and none
waits for another. The row goes in the transaction that held it, after the broker has taken the
task: whoever dies in between leaves the row, and the task is handed over twice rather than never.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.db import connections, models, transaction
from django.utils import timezone

from foundation.models import OutboxTask
from foundation.tasks.broker import Broker, BrokerAway

ALIAS = "relay"
BATCH = 100


def hand_over(broker: Broker, ids: Sequence[UUID]) -> int:
    """Hand over those of the given tasks that nobody else is handing over."""
    return _hand_over(broker, _rows().filter(pk__in=ids))


def hand_over_due(broker: Broker, limit: int = BATCH) -> int:
    """Hand over tasks whose time has come, the longest waiting first."""
    return _hand_over(broker, _rows().filter(due_at__lte=timezone.now()).order_by("due_at")[:limit])


def _rows() -> models.QuerySet[OutboxTask]:
    return OutboxTask.objects.using(ALIAS).select_for_update(skip_locked=True)


def _hand_over(broker: Broker, rows: models.QuerySet[OutboxTask]) -> int:
    """Send what can be sent; raise `BrokerAway` once what was sent has been recorded as such."""
    sent: list[UUID] = []
    away: BrokerAway | None = None
    try:
        with transaction.atomic(using=ALIAS):
            try:
                for row in rows:
                    broker.send(row)
                    sent.append(row.id)
            except BrokerAway as error:
                away = error
            if sent:
                OutboxTask.objects.using(ALIAS).filter(pk__in=sent).delete()
    finally:
        connections[ALIAS].close()
    if away is not None:
        raise away
    return len(sent)
