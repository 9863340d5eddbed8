"""Unaccepted invitations are deleted at expiry, with an audit entry; accepted ones later."""

from __future__ import annotations

import datetime
from uuid import UUID

from django.utils import timezone

from foundation.scope import scoped
from foundation.tasks import task
from foundation.tasks.definition import PERIODIC
from tenants import audit
from tenants.models import Invitation
from tenants.sweeps.batches import delete_in_batches

MAX_INVITATIONS = 1000
KEEP_ACCEPTED = datetime.timedelta(days=30)


@task(name="tenants.sweeps.expired_invitations", policy=PERIODIC)
def sweep() -> None:
    """Delete invitations whose retention is over."""
    now = timezone.now()
    every = Invitation.unscoped.using("relay")
    due = every.filter(accepted_at=None, expires_at__lte=now).order_by("expires_at")
    for tenant_id, pk in due.values_list("tenant_id", "pk")[:MAX_INVITATIONS]:
        with scoped(tenant_id=tenant_id):
            _remove(pk, now)
    delete_in_batches(every.filter(accepted_at__lt=now - KEEP_ACCEPTED))


def _remove(pk: UUID, now: datetime.datetime) -> None:
    still_due = Invitation.objects.filter(pk=pk, accepted_at=None, expires_at__lte=now)
    invitation = still_due.select_for_update().first()
    if invitation is None:
        return
    invitation.delete()
    audit.record(
        None,
        "invitation.expired",
        audit.AuditTarget("invitation", str(pk)),
        before={"email": invitation.email, "role": invitation.role},
    )
