"""Expired console sessions and mailed links are deleted."""

from __future__ import annotations

from django.utils import timezone

from foundation.tasks import task
from foundation.tasks.definition import PERIODIC
from tenants.models import EmailProof, UserSession
from tenants.sweeps.batches import delete_in_batches


@task(name="tenants.sweeps.expired_sign_ins", policy=PERIODIC)
def sweep() -> None:
    """Delete expired sessions and links."""
    now = timezone.now()
    delete_in_batches(UserSession.objects.using("relay").filter(expires_at__lte=now))
    delete_in_batches(EmailProof.objects.using("relay").filter(expires_at__lte=now))
