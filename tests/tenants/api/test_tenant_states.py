"""What an owner cannot undo: a suspension by staff, and a deletion whose grace period is over."""

from __future__ import annotations

import datetime

from django.utils import timezone

from tenants.models import Tenant
from tests.caller import problem, signed_in
from tests.make import TenantAccount, make_tenant


def _suspended_account() -> TenantAccount:
    account = make_tenant()
    Tenant.objects.using("staff").filter(pk=account.tenant.pk).update(state=Tenant.State.SUSPENDED)
    return account


def _state(account: TenantAccount) -> str:
    return Tenant.objects.using("staff").get(pk=account.tenant.pk).state


def test_an_owner_cannot_lift_a_suspension_by_deleting_and_restoring(server: str) -> None:
    account = _suspended_account()
    owner, path = signed_in(server, account.owner), f"/api/v1/tenants/{account.slug}"
    problem(owner.delete(path), 403, "tenant_suspended")
    problem(owner.post(f"{path}:restore"), 409, "conflict")
    assert _state(account) == "suspended"


def test_a_suspended_tenant_can_be_read_and_not_changed(server: str) -> None:
    account = _suspended_account()
    owner, path = signed_in(server, account.owner), f"/api/v1/tenants/{account.slug}"
    assert owner.get(path).json()["state"] == "suspended"
    problem(owner.patch(path, {"name": "Still here"}), 403, "tenant_suspended")


def test_after_the_days_of_grace_a_tenant_cannot_be_restored(server: str) -> None:
    """Its removal may have begun, and would continue in a tenant that was supposed to be
    restored.
    """
    account = make_tenant()
    owner, path = signed_in(server, account.owner), f"/api/v1/tenants/{account.slug}"
    assert owner.delete(path).status_code == 200
    past = timezone.now() - datetime.timedelta(seconds=1)
    Tenant.objects.using("relay").filter(pk=account.tenant.pk).update(purge_at=past)
    problem(owner.post(f"{path}:restore"), 410, "tenant_deleted")
    assert _state(account) == "deleting"
