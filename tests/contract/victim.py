"""A tenant with one resource of every kind, each with a name that other tenants must never see.

New kinds of resources are created here too; test_isolation.py then searches all responses for their
names.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from uuid import UUID, uuid4

from django.utils import timezone

from aggregates.models import Aggregate
from analytics.models import Dataset
from documents.models import Collection
from foundation.scope import scoped
from realtime.models import Cluster
from storage_engine.models import Topic
from tenants import keys
from tenants.models import (
    ApiKey,
    AuditEntry,
    ErrorEntry,
    Invitation,
    Issuer,
    PersonalToken,
    SavedQuery,
    Webhook,
    WebhookDelivery,
)
from tests.make import TenantAccount, make_tenant

FAR_AWAY = "2099-01-01T00:00:00Z"

# The values of path parameters, by the parameter's name.
Ids = dict[str, UUID | str]


@dataclass(frozen=True)
class Victim:
    account: TenantAccount
    mark: str
    ids: dict[str, str]


@cache
def victim() -> Victim:
    account, mark = make_tenant(), f"private-{uuid4().hex}"
    ids: Ids = {"user": account.owner.id}
    with scoped(tenant_id=account.tenant.id, user_id=account.owner.id):
        ids |= _ways_in(account, mark) | _notices(mark) | _data(mark)
    _record_error(account, mark)
    return Victim(account, mark, {name: str(value) for name, value in ids.items()})


def _ways_in(account: TenantAccount, mark: str) -> Ids:
    key = ApiKey.objects.create(
        kind="secret", name=mark, key_id=keys.mint(keys.Prefix.SECRET).key_id, secret_hash=b"x"
    )
    issuer = Issuer.objects.create(name="i", issuer=mark, audience=mark, sealed_secret=b"x")
    invitation = Invitation.objects.create(
        email=f"{mark}@example.test",
        role="viewer",
        token_hash=mark.encode()[:32],
        expires_at=FAR_AWAY,
    )
    token = PersonalToken.objects.create(
        user=account.owner,
        tenant=account.tenant,
        name=mark,
        secret_hash=b"x",
        key_id=keys.mint(keys.Prefix.PERSONAL).key_id,
    )
    return {"key": key.id, "issuer": issuer.id, "invitation": invitation.id, "token": token.id}


def _notices(mark: str) -> Ids:
    webhook = Webhook.objects.create(
        name=mark, url=f"https://{mark}.example", events=["*"], sealed_secret=b"x"
    )
    delivery = WebhookDelivery.objects.create(
        webhook=webhook, event_id=uuid4(), event_type="x.y", payload={"mark": mark}
    )
    AuditEntry.objects.create(
        action=f"x.{mark[:20]}",
        actor="system",
        actor_label=mark,
        target_type="x",
        target_id=mark,
    )
    return {"webhook": webhook.id, "delivery": delivery.id}


def _data(mark: str) -> Ids:
    collection = Collection.objects.create(name=mark)
    topic = Topic.objects.create(name=mark[:60], kind="flat", retention_s=60, max_data_bytes=100)
    aggregate = Aggregate.objects.create(
        name=mark[:60],
        definition='{"dimensions": [], "time": null, "measures": {}, "rollups": []}',
    )
    dataset = Dataset.objects.create(name=mark[:60], definition='{"tables": {}}', retention_s=60)
    Cluster.objects.create(
        write_partitions=1,
        node_size="small",
        tier="burstable",
        due_at=FAR_AWAY,
        conditions=[{"message": mark}],
    )
    saved = SavedQuery.objects.create(name=mark, kind="collection", source=mark[:60], query="{}")
    return {
        "saved_query": saved.id,
        "collection": collection.name,
        "topic": topic.name,
        "aggregate": aggregate.name,
        "dataset": dataset.name,
    }


def _record_error(account: TenantAccount, mark: str) -> None:
    now = timezone.now()
    ErrorEntry.unscoped.using("relay").create(
        tenant_id=account.tenant.id,
        area="request",
        code="forbidden",
        place=mark,
        detail=mark,
        at=now,
        last_at=now,
        fingerprint=uuid4().bytes,
    )
