"""What the storage node is told of topics that were dropped or changed."""

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
    if admin.is_there():
        admin.drop_topic(UUID(tenant), UUID(topic))


@task(name=RETENTION_TASK)
def retain(*, tenant: str, topic: str) -> None:
    """Tell the node a topic's retention as it is now."""
    with scoped(tenant_id=UUID(tenant)):
        found = Topic.objects.filter(pk=UUID(topic)).first()
    if found is not None and admin.is_there():
        admin.set_retention(UUID(tenant), UUID(topic), found.retention_s)
