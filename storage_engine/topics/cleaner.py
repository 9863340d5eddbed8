"""Removes a tenant's topics with the tenant."""

from __future__ import annotations

from uuid import UUID

from storage_engine.models import DeliveredSubscription, Topic
from storage_engine.node import admin

ALIAS = "relay"


def clean(tenant_id: UUID) -> None:
    """Remove topics, and the tenant's namespace in the storage node."""
    DeliveredSubscription.unscoped.using(ALIAS).filter(tenant_id=tenant_id).delete()
    Topic.unscoped.using(ALIAS).filter(tenant_id=tenant_id).delete()
    if admin.is_configured():
        admin.drop_namespace(tenant_id)
