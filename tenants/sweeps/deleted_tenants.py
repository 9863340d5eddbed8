"""Tenants whose days of grace are over are removed from every store."""

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
    """Have each tenant that is due removed by a task of its own."""
    due = Tenant.objects.using("relay").filter(
        state=Tenant.State.DELETING, purge_at__lte=timezone.now()
    )
    with transaction.atomic(using="relay"):
        for pk in due.order_by("purge_at").values_list("pk", flat=True)[:MAX_TENANTS]:
            # The task belongs to no tenant: removing the tenant removes its waiting tasks.
            run_after_commit(PURGE_TASK, {"tenant": str(pk)}, using="relay")


@task(name=PURGE_TASK)
def purge_tenant(*, tenant: str) -> None:
    """Remove a tenant, unless its deletion has been taken back."""
    if _is_due(UUID(tenant)):
        purge(UUID(tenant))


def _is_due(tenant_id: UUID) -> bool:
    """Tell whether the days of grace are over, once nobody is about to restore the tenant."""
    due = Tenant.objects.using("relay").filter(
        pk=tenant_id, state=Tenant.State.DELETING, purge_at__lte=timezone.now()
    )
    with transaction.atomic(using="relay"):
        return due.select_for_update().first() is not None
