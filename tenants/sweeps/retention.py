"""What is deleted when its retention is over."""

from __future__ import annotations

import datetime

from django.db import models
from django.db.models import Count, Q
from django.utils import timezone

from foundation.environment import environment
from foundation.models import CallProgress, IdempotencyRecord
from foundation.tasks import task
from foundation.tasks.definition import PERIODIC
from tenants.models import (
    AuditEntry,
    EmailProof,
    ErrorEntry,
    PersonalToken,
    UsageMinute,
    UserSession,
    WebhookDelivery,
)

BATCH_ROWS = 1000
#: With this many batches a run stays far below a task's time limit.
MAX_BATCHES = 50
MAX_ERRORS = 10_000
#: The overview of a tenant shows the last hour.
MINUTES_KEPT = datetime.timedelta(hours=2)

DAY = datetime.timedelta(days=1)
MONTH = 30 * DAY


def delete_in_batches(rows: models.QuerySet[models.Model]) -> None:
    """Delete the rows in small transactions, so that none holds locks for long, up to the limit
    of one run.
    """
    for _ in range(MAX_BATCHES):
        ids = list(rows.values_list("pk", flat=True)[:BATCH_ROWS])
        if not ids:
            return
        rows.model._base_manager.using("relay").filter(pk__in=ids).delete()


@task(name="tenants.sweeps.expired_sign_ins", policy=PERIODIC)
def delete_sign_ins() -> None:
    """Delete expired console sessions and links."""
    now = timezone.now()
    delete_in_batches(UserSession.objects.using("relay").filter(expires_at__lte=now))
    delete_in_batches(EmailProof.objects.using("relay").filter(expires_at__lte=now))


@task(name="tenants.sweeps.expired_tokens", policy=PERIODIC)
def delete_tokens() -> None:
    """Delete personal tokens that became invalid over a month ago."""
    before = timezone.now() - MONTH
    over = Q(expires_at__lt=before) | Q(revoked_at__lt=before)
    delete_in_batches(PersonalToken.objects.using("relay").filter(over))


@task(name="tenants.sweeps.old_audit_entries", policy=PERIODIC)
def delete_audit_entries() -> None:
    """Delete audit entries that are older than the settings specify."""
    before = timezone.now() - environment().rillbase_audit_retention_days * DAY
    delete_in_batches(AuditEntry.unscoped.using("relay").filter(at__lt=before))


@task(name="tenants.sweeps.old_deliveries", policy=PERIODIC)
def delete_deliveries() -> None:
    """Delete deliveries of webhooks that ended over a month ago."""
    before = timezone.now() - MONTH
    delete_in_batches(WebhookDelivery.unscoped.using("relay").filter(finished_at__lt=before))


@task(name="tenants.sweeps.old_usage_minutes", policy=PERIODIC)
def delete_usage_minutes() -> None:
    """Delete usage by minute that the overview no longer shows."""
    before = timezone.now() - MINUTES_KEPT
    delete_in_batches(UsageMinute.unscoped.using("relay").filter(minute__lt=before))


@task(name="tenants.sweeps.old_errors", policy=PERIODIC)
def delete_errors() -> None:
    """Delete expired entries of the error log, and the oldest of tenants over the limit."""
    rows = ErrorEntry.unscoped.using("relay")
    before = timezone.now() - environment().rillbase_error_log_retention_days * DAY
    delete_in_batches(rows.filter(last_at__lt=before))
    counted = rows.order_by().values("tenant_id").annotate(entries=Count("pk"))
    for tenant_id in counted.filter(entries__gt=MAX_ERRORS).values_list("tenant_id", flat=True):
        own = rows.filter(tenant_id=tenant_id)
        newest_excess = own.order_by("-pk").values_list("pk", flat=True)[MAX_ERRORS]
        delete_in_batches(own.filter(pk__lte=newest_excess))


@task(name="tenants.sweeps.old_idempotency_records", policy=PERIODIC)
def delete_idempotency_records() -> None:
    """Delete what is stored for retried calls after the promised day."""
    before = timezone.now() - DAY
    for model in (IdempotencyRecord, CallProgress):
        delete_in_batches(model._base_manager.using("relay").filter(created_at__lt=before))
