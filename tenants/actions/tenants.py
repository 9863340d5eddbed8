"""Create, change, delete and restore tenants."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from uuid import UUID

from django.db import IntegrityError, transaction
from django.utils import timezone

from foundation.api.rendering import timestamp
from foundation.environment import environment
from foundation.errors import Conflict, NameTaken, TenantDeleted, TenantSuspended
from foundation.json_types import JsonObject, JsonValue
from foundation.scope import scoped
from tenants import audit
from tenants.models import Membership, Tenant
from tenants.principals import Principal
from tenants.roles import Role


def describe(tenant: Tenant) -> JsonObject:
    """Return a tenant as the API shows it."""
    return {
        "id": str(tenant.id),
        "slug": tenant.slug,
        "name": tenant.name,
        "plan": tenant.plan_id,
        "state": tenant.state,
        "cors_origins": tenant.cors_origins,
        "created_at": timestamp(tenant.created_at),
        "updated_at": timestamp(tenant.updated_at),
        "purge_at": timestamp(tenant.purge_at) if tenant.purge_at else None,
    }


def _target(tenant: Tenant) -> audit.AuditTarget:
    return audit.AuditTarget("tenant", str(tenant.id))


def do_create(principal: Principal, owner_id: UUID, slug: str, name: str) -> Tenant:
    """Create a tenant with its first owner."""
    tenant = Tenant(slug=slug, name=name or slug, plan_id=environment().rillbase_default_plan)
    with scoped(tenant_id=tenant.id, user_id=owner_id):
        try:
            with transaction.atomic():
                tenant.save(force_insert=True)
        except IntegrityError:
            raise NameTaken(f"A tenant named {slug!r} already exists.") from None
        Membership.objects.create(user_id=owner_id, role=Role.OWNER)
        audit.record(principal, "tenant.created", _target(tenant), after=describe(tenant))
    return tenant


def do_change(principal: Principal, tenant: Tenant, changes: Mapping[str, JsonValue]) -> None:
    """Change a tenant's name or allowed origins."""
    _refuse_suspended(tenant)
    before = describe(tenant)
    for field, value in changes.items():
        setattr(tenant, field, value)
    tenant.save_next_version()
    audit.record(
        principal, "tenant.updated", _target(tenant), before=before, after=describe(tenant)
    )


def do_delete(principal: Principal, tenant: Tenant) -> None:
    """Disable a tenant now; its data is removed when the grace period ends."""
    if tenant.state == Tenant.State.DELETING:
        raise Conflict("The tenant is already being deleted.")
    _refuse_suspended(tenant)
    before = describe(tenant)
    tenant.state = Tenant.State.DELETING
    tenant.deleted_at = timezone.now()
    tenant.purge_at = tenant.deleted_at + datetime.timedelta(
        days=environment().rillbase_tenant_grace_days
    )
    tenant.save_next_version()
    audit.record(
        principal, "tenant.deleted", _target(tenant), before=before, after=describe(tenant)
    )


def do_restore(principal: Principal, tenant: Tenant) -> None:
    """Restore a tenant during its grace period.

    Afterwards it is too late even if nothing has been removed yet: the removal may start at any
    time and is never interrupted. The caller holds the row lock, which the removal takes too before
    it decides.
    """
    if tenant.state != Tenant.State.DELETING:
        raise Conflict("The tenant is not being deleted.")
    if tenant.purge_at is not None and tenant.purge_at <= timezone.now():
        raise TenantDeleted("The grace period is over.")
    tenant.state = Tenant.State.ACTIVE
    tenant.deleted_at = tenant.purge_at = None
    tenant.save_next_version()
    audit.record(principal, "tenant.restored", _target(tenant), after=describe(tenant))


def _refuse_suspended(tenant: Tenant) -> None:
    """Raise if staff have suspended the tenant: deleting and restoring would lift that."""
    if tenant.state == Tenant.State.SUSPENDED:
        raise TenantSuspended
