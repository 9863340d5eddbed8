"""Personal tokens are deleted a month after they expired or were revoked."""

from __future__ import annotations

import datetime

from django.db.models import Q
from django.utils import timezone

from foundation.tasks import task
from foundation.tasks.definition import PERIODIC
from tenants.models import PersonalToken
from tenants.sweeps.batches import delete_in_batches

KEEP = datetime.timedelta(days=30)


@task(name="tenants.sweeps.expired_tokens", policy=PERIODIC)
def sweep() -> None:
    """Delete tokens that became invalid over a month ago."""
    before = timezone.now() - KEEP
    over = Q(expires_at__lt=before) | Q(revoked_at__lt=before)
    delete_in_batches(PersonalToken.objects.using("relay").filter(over))
