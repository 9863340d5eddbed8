"""Expired API keys are recorded in the audit log, once each.

Nothing is deleted: authentication rejects them anyway, and their owners want to see what expired. A
key whose expiry is moved and passes again is recorded again.
"""

from __future__ import annotations

import datetime

from django.db.models import F, Q
from django.utils import timezone

from foundation.api.rendering import timestamp
from foundation.scope import scoped
from foundation.tasks import task
from foundation.tasks.definition import PERIODIC
from tenants import audit
from tenants.models import ApiKey

MAX_KEYS = 1000
_NOT_NOTIFIED = Q(expiry_noted_at=None) | Q(expiry_noted_at__lt=F("expires_at"))


@task(name="tenants.sweeps.expired_api_keys", policy=PERIODIC)
def sweep() -> None:
    """Record keys that have expired."""
    now = timezone.now()
    due = ApiKey.unscoped.using("relay").filter(_NOT_NOTIFIED, expires_at__lte=now, revoked_at=None)
    for key in due.order_by("expires_at")[:MAX_KEYS]:
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
