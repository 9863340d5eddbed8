"""Audit entries are kept as long as the settings specify."""

from __future__ import annotations

import datetime

from django.utils import timezone

from foundation.environment import environment
from foundation.tasks import task
from foundation.tasks.definition import PERIODIC
from tenants.models import AuditEntry
from tenants.sweeps.batches import delete_in_batches


@task(name="tenants.sweeps.old_audit_entries", policy=PERIODIC)
def sweep() -> None:
    """Delete entries whose retention is over."""
    keep = datetime.timedelta(days=environment().rillbase_audit_retention_days)
    delete_in_batches(AuditEntry.unscoped.using("relay").filter(at__lt=timezone.now() - keep))
