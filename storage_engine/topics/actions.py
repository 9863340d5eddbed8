"""Create, change and drop topics. The row is authoritative. The storage node learns of a new topic
with its first call, and of a dropped one from a task, so a transaction never waits for the node.
"""

from __future__ import annotations

from typing import TypedDict
from uuid import UUID

from django.db import transaction

from foundation.errors import NameTaken
from foundation.json_types import JsonObject
from foundation.tasks import run_after_commit
from storage_engine.models import Topic
from storage_engine.node import admin
from storage_engine.topics.deliveries import end_all
from storage_engine.topics.topic_json import describe
from tenants import audit
from tenants.models import Tenant
from tenants.principals import Principal
from tenants.quotas import ensure_room

DROP_TASK = "storage_engine.topics.drop"
RETENTION_TASK = "storage_engine.topics.retain"
#: A client that published while the topic was being dropped may have created it again. After this
#: time no cache contains the topic any more.
AGAIN_AFTER_S = 10.0


class TopicValues(TypedDict, total=False):
    """The fields of a validated body."""

    name: str
    kind: str
    grid: JsonObject | None
    retention_s: int
    max_data_bytes: int


def do_create(principal: Principal | None, tenant: Tenant, values: TopicValues) -> Topic:
    """Create a topic."""
    # This locks the tenant's row, so the name cannot be taken between the check and the insert.
    ensure_room(tenant, "topics", Topic.objects.all())
    if Topic.objects.filter(name=values["name"]).exists():
        raise NameTaken(f"A topic named {values['name']!r} already exists.")
    topic = Topic.objects.create(
        name=values["name"],
        kind=values["kind"],
        grid=values["grid"],
        retention_s=values["retention_s"],
        max_data_bytes=values["max_data_bytes"],
    )
    _record(principal, "topic.created", topic, after=describe(topic))
    return topic


def do_change(principal: Principal | None, topic: Topic, values: TopicValues) -> None:
    """Change a locked topic."""
    before = describe(topic)
    for name in ("retention_s", "max_data_bytes"):
        if name in values:
            setattr(topic, name, values[name])
    topic.save_next_version()
    if "retention_s" in values:
        run_after_commit(RETENTION_TASK, _arguments(topic), tenant_id=topic.tenant_id)
    _record(principal, "topic.updated", topic, before=before, after=describe(topic))


def do_delete(principal: Principal | None, topic: Topic) -> None:
    """Drop a locked topic with all of its publications and subscriptions. The node is notified as
    soon as this has committed, so that subscribers learn of it immediately; the task covers a node
    that does not respond.
    """
    before, arguments = describe(topic), _arguments(topic)
    tenant_id, topic_id = topic.tenant_id, topic.pk
    for due_in_s in (0.0, AGAIN_AFTER_S):
        run_after_commit(DROP_TASK, arguments, tenant_id=topic.tenant_id, due_in_s=due_in_s)
    end_all(topic)
    _record(principal, "topic.deleted", topic, before=before)
    topic.delete()
    transaction.on_commit(lambda: _drop_now(tenant_id, topic_id), robust=True)


def _drop_now(tenant_id: UUID, topic_id: UUID) -> None:
    if admin.is_configured():
        admin.drop_topic(tenant_id, topic_id)


def _arguments(topic: Topic) -> JsonObject:
    return {"tenant": str(topic.tenant_id), "topic": str(topic.pk)}


def _record(
    principal: Principal | None,
    action: str,
    topic: Topic,
    *,
    before: JsonObject | None = None,
    after: JsonObject | None = None,
) -> None:
    target = audit.AuditTarget("topic", str(topic.pk))
    audit.record(principal, action, target, before=before, after=after)
