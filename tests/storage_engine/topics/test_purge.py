"""A tenant's data in the storage node is removed with the tenant."""

from __future__ import annotations

import os

import redis

from storage_engine.topics import cleaner
from tests.storage_engine.topics.topic_client import Topic


def namespaces() -> set[str]:
    with redis.Redis.from_url(os.environ["STORAGE_URL"]) as node:
        listed = node.execute_command("RB.NAMESPACE.LIST")
    return {namespace[b"name"].decode() for namespace in listed}


def test_a_namespace_is_removed_with_its_tenant(topic: Topic) -> None:
    tenant_id = topic.account.tenant.pk
    topic.publish(id="1")
    assert str(tenant_id) in namespaces()
    cleaner.clean(tenant_id)
    assert str(tenant_id) not in namespaces()
    cleaner.clean(tenant_id)
