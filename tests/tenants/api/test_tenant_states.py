"""What an owner cannot undo: a suspension by staff, and a deletion whose grace is over."""

from __future__ import annotations

import datetime

from django.utils import timezone

from tenants.models import Tenant
from tests.caller import problem, signed_in
from tests.make import MadeTenant, make_tenant


def _suspended() -> MadeTenant:
    made = make_tenant()
    Tenant.objects.using("staff").filter(pk=made.tenant.pk).update(state=Tenant.State.SUSPENDED)
    return made


def _state(made: MadeTenant) -> str:
    return Tenant.objects.using("staff").get(pk=made.tenant.pk).state


def test_an_owner_cannot_lift_a_suspension_by_deleting_and_restoring(server: str) -> None:
    made = _suspended()
    owner, path = signed_in(server, made.owner), f"/api/v1/tenants/{made.slug}"
    problem(owner.delete(path), 403, "tenant_suspended")
    problem(owner.post(f"{path}:restore"), 409, "conflict")
    assert _state(made) == "suspended"


def test_a_suspended_tenant_can_be_read_and_not_changed(server: str) -> None:
    made = _suspended()
    owner, path = signed_in(server, made.owner), f"/api/v1/tenants/{made.slug}"
    assert owner.get(path).json()["state"] == "suspended"
    problem(owner.patch(path, {"name": "Still here"}), 403, "tenant_suspended")


def test_after_the_days_of_grace_a_tenant_cannot_be_restored(server: str) -> None:
    """Its removal may have begun, and would go on under a tenant that was promised back."""
    made = make_tenant()
    owner, path = signed_in(server, made.owner), f"/api/v1/tenants/{made.slug}"
    assert owner.delete(path).status_code == 200
    past = timezone.now() - datetime.timedelta(seconds=1)
    Tenant.objects.using("relay").filter(pk=made.tenant.pk).update(purge_at=past)
    problem(owner.post(f"{path}:restore"), 410, "tenant_deleted")
    assert _state(made) == "deleting"
