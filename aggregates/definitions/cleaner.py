"""Removes a tenant's aggregates with the tenant; their rows go with its namespace in the node."""

from __future__ import annotations

from uuid import UUID

from aggregates.models import Aggregate

ALIAS = "relay"


def clean(tenant_id: UUID) -> None:
    """Remove the tenant's aggregates."""
    Aggregate.unscoped.using(ALIAS).filter(tenant_id=tenant_id).delete()
