"""What expires with an entry in the audit log: API keys and invitations."""

from __future__ import annotations

import datetime
from uuid import UUID

from django.db.models import F, Q
from django.utils import timezone

from foundation.api.rendering import timestamp
from foundation.scope import scoped
from foundation.tasks import task
from foundation.tasks.definition import PERIODIC
from tenants import audit
from tenants.models import ApiKey, Invitation
from tenants.sweeps.retention import MONTH, delete_in_batches

MAX_ROWS = 1000
_NOT_NOTIFIED = Q(expiry_noted_at=None) | Q(expiry_noted_at__lt=F("expires_at"))


@task(name="tenants.sweeps.expired_api_keys", policy=PERIODIC)
def note_api_keys() -> None:
    """Record keys that have expired, once each.

    Authentication rejects them anyway, and their owners want to see what expired. A key whose
    expiry is moved and passes again is recorded again.
    """
    now = timezone.now()
    due = ApiKey.unscoped.using("relay").filter(_NOT_NOTIFIED, expires_at__lte=now, revoked_at=None)
    for key in due.order_by("expires_at")[:MAX_ROWS]:
        with scoped(tenant_id=key.tenant_id):
            _notify_owner(key, now)


def _notify_owner(key: ApiKey, now: datetime.datetime) -> None:
    claimed = ApiKey.objects.filter(_NOT_NOTIFIED, pk=key.pk, expires_at__lte=now).update(
        expiry_noted_at=now
    )
    if claimed:
        expires_at = timestamp(key.expires_at) if key.expires_at else None
        audit.record(
            None,
            "api_key.expired",
            audit.AuditTarget("api_key", str(key.pk)),
            after={"name": key.name, "key_id": key.key_id, "expires_at": expires_at},
        )


@task(name="tenants.sweeps.expired_invitations", policy=PERIODIC)
def delete_invitations() -> None:
    """Delete unaccepted invitations at expiry, accepted ones a month after acceptance."""
    now = timezone.now()
    every = Invitation.unscoped.using("relay")
    due = every.filter(accepted_at=None, expires_at__lte=now).order_by("expires_at")
    for tenant_id, pk in due.values_list("tenant_id", "pk")[:MAX_ROWS]:
        with scoped(tenant_id=tenant_id):
            _remove(pk, now)
    delete_in_batches(every.filter(accepted_at__lt=now - MONTH))


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
