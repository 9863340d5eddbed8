"""From the outbox to the broker, by any number of processes at once.

Rows are claimed by `FOR UPDATE SKIP LOCKED`: two dispatchers never hold the same row, and none
waits for another. The transaction that locks the row marks it as sent after the broker has accepted
the task: after a crash in between, the row is unchanged, and the task is sent twice rather than
never.

The row stays until the task has ended. A broker may lose messages, so a row also records which
state of the broker's data contains its message. `reclaim_lost` finds rows of an earlier state.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from uuid import UUID

from django.db import connections, models, transaction
from django.utils import timezone

from foundation.models import OutboxTask
from foundation.tasks.broker import Broker, BrokerUnavailable

ALIAS = "relay"
BATCH = 100
#: A message whose task has not ended after this time counts as lost.
MESSAGE_LIFETIME = datetime.timedelta(days=1)
#: Queues contain many tasks; this number is reclaimed per transaction.
RECLAIM_BATCH = 10_000


def hand_over(broker: Broker, ids: Sequence[UUID]) -> int:
    """Send those of the given tasks that no other dispatcher is sending."""
    return _hand_over(broker, _waiting().filter(pk__in=ids))


def hand_over_due(broker: Broker, limit: int = BATCH) -> int:
    """Send due tasks, the longest waiting first."""
    due = _waiting().filter(due_at__lte=timezone.now())
    return _hand_over(broker, due.order_by("due_at")[:limit])


def reclaim_lost(data_id: str) -> int:
    """Mark tasks as unsent whose messages are not in the broker's data, as identified by the id.
    The caller repeats this until it returns less than `RECLAIM_BATCH`.
    """
    handed_over = OutboxTask.objects.using(ALIAS).exclude(handed_to="")
    unconfirmed = handed_over.filter(
        ~models.Q(handed_to=data_id) | models.Q(handed_at__lt=timezone.now() - MESSAGE_LIFETIME)
    )
    batch = unconfirmed.select_for_update(skip_locked=True).values("pk")[:RECLAIM_BATCH]
    try:
        with transaction.atomic(using=ALIAS):
            return OutboxTask.objects.using(ALIAS).filter(pk__in=batch).update(handed_to="")
    finally:
        connections[ALIAS].close()


def _waiting() -> models.QuerySet[OutboxTask]:
    return OutboxTask.objects.using(ALIAS).filter(handed_to="").select_for_update(skip_locked=True)


def _hand_over(broker: Broker, rows: models.QuerySet[OutboxTask]) -> int:
    """Send what can be sent; raise `BrokerUnavailable` after recording what was sent."""
    # Read before anything is sent: if data is lost in between, the id has changed by then.
    data_id = broker.data_id()
    sent: list[UUID] = []
    unavailable: BrokerUnavailable | None = None
    try:
        with transaction.atomic(using=ALIAS):
            try:
                for row in rows:
                    broker.send(row)
                    sent.append(row.id)
            except BrokerUnavailable as error:
                unavailable = error
            if sent:
                OutboxTask.objects.using(ALIAS).filter(pk__in=sent).update(
                    handed_to=data_id, handed_at=timezone.now()
                )
    finally:
        connections[ALIAS].close()
    if unavailable is not None:
        raise unavailable
    return len(sent)
