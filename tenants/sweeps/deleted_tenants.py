"""Tenants whose grace period is over are removed from every store."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction
from django.utils import timezone

from foundation.tasks import run_after_commit, task
from foundation.tasks.definition import PERIODIC
from tenants.models import Tenant
from tenants.purge import purge

PURGE_TASK = "tenants.sweeps.purge_tenant"
MAX_TENANTS = 100


@task(name="tenants.sweeps.deleted_tenants", policy=PERIODIC)
def sweep() -> None:
    """Start a separate task to remove each tenant that is due."""
    due = Tenant.objects.using("relay").filter(
        state=Tenant.State.DELETING, purge_at__lte=timezone.now()
    )
    with transaction.atomic(using="relay"):
        for pk in due.order_by("purge_at").values_list("pk", flat=True)[:MAX_TENANTS]:
            # The task belongs to no tenant: removing the tenant removes its waiting tasks.
            run_after_commit(PURGE_TASK, {"tenant": str(pk)}, using="relay")


@task(name=PURGE_TASK)
def purge_tenant(*, tenant: str) -> None:
    """Remove a tenant, unless it has been restored."""
    if _is_due(UUID(tenant)):
        purge(UUID(tenant))


def _is_due(tenant_id: UUID) -> bool:
    """Return whether the grace period is over, after waiting for a concurrent restore."""
    due = Tenant.objects.using("relay").filter(
        pk=tenant_id, state=Tenant.State.DELETING, purge_at__lte=timezone.now()
    )
    with transaction.atomic(using="relay"):
        return due.select_for_update().first() is not None
