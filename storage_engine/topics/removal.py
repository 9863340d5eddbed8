"""Notifies the storage node of dropped and changed topics."""

from __future__ import annotations

from uuid import UUID

from foundation.scope import scoped
from foundation.tasks import task
from storage_engine.models import Topic
from storage_engine.node import admin
from storage_engine.topics.actions import DROP_TASK, RETENTION_TASK


@task(name=DROP_TASK)
def drop(*, tenant: str, topic: str) -> None:
    """Remove a dropped topic's publications and subscriptions."""
    if admin.is_configured():
        admin.drop_topic(UUID(tenant), UUID(topic))


@task(name=RETENTION_TASK)
def retain(*, tenant: str, topic: str) -> None:
    """Send a topic's current retention to the node. Another copy of this task may have read an
    earlier value and be the last to send it.
    """
    tenant_id, topic_id = UUID(tenant), UUID(topic)
    applied: int | None = None
    while (retention_s := _retention_s(tenant_id, topic_id)) != applied:
        if retention_s is None or not admin.is_configured():
            return
        admin.set_retention(tenant_id, topic_id, retention_s)
        applied = retention_s


def _retention_s(tenant_id: UUID, topic_id: UUID) -> int | None:
    with scoped(tenant_id=tenant_id):
        return Topic.objects.filter(pk=topic_id).values_list("retention_s", flat=True).first()
