"""Removes all data of a tenant, and verifies that nothing is left.

Each feature registers a cleaner for what it stores; cleaners run in reverse order of registration,
so that what depends on the tenants' tables goes before them. Cleaning may be interrupted anywhere
and then starts over. The tenant's row is deleted last: as long as it exists, the sweep retries.
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from django.db import connections, models, transaction
from redis import Redis

from foundation.environment import environment
from foundation.models import CallProgress, DeadLetter, IdempotencyRecord, OutboxTask
from tenants.models import (
    ApiKey,
    AuditEntry,
    ErrorEntry,
    Invitation,
    Issuer,
    Membership,
    PersonalToken,
    Quota,
    RequestBatch,
    RequestGap,
    SavedQuery,
    Tenant,
    UsageHour,
    UsageMinute,
    UsageSample,
    Webhook,
    WebhookDelivery,
)
from tenants.quotas import LIMITS, request_limits

ALIAS = "relay"
BATCH_ROWS = 5000
VALKEY_TIMEOUT_S = 10.0

Cleaner = Callable[[UUID], None]
"""Removes what one part stores of a tenant. Called again, it finds nothing to do."""

_cleaners: list[Cleaner] = []

#: Tables of tenants, each before those it references.
_TENANT_TABLES: tuple[type[models.Model], ...] = (
    WebhookDelivery,
    Webhook,
    ApiKey,
    PersonalToken,
    Invitation,
    Issuer,
    Membership,
    Quota,
    SavedQuery,
    UsageHour,
    AuditEntry,
)
#: Tables without a foreign key to the tenant: a late writer may add rows until the end.
_LOOSE_TABLES: tuple[type[models.Model], ...] = (
    UsageSample,
    UsageMinute,
    ErrorEntry,
    RequestBatch,
    RequestGap,
    IdempotencyRecord,
    CallProgress,
    OutboxTask,
    DeadLetter,
)


def register_cleaner(cleaner: Cleaner) -> Cleaner:
    """Register a cleaner; usable as a decorator. For `AppConfig.ready` of later features."""
    _cleaners.append(cleaner)
    return cleaner


def purge(tenant_id: UUID) -> None:
    """Remove a tenant from every store."""
    for cleaner in reversed(_cleaners):
        cleaner(tenant_id)
    Tenant.objects.using(ALIAS).filter(pk=tenant_id).delete()
    # Nothing new can start for a tenant without a row; work in flight may have left these.
    _clean_tables(tenant_id, _LOOSE_TABLES)


@register_cleaner
def _clean_tenancy(tenant_id: UUID) -> None:
    _clean_limits(tenant_id)
    _clean_tables(tenant_id, (*_TENANT_TABLES, *_LOOSE_TABLES))


def _clean_tables(tenant_id: UUID, tables: tuple[type[models.Model], ...]) -> None:
    for model in tables:
        while _delete_batch(model, tenant_id) == BATCH_ROWS:
            pass


def _delete_batch(model: type[models.Model], tenant_id: UUID) -> int:
    """Delete some rows without reading them. Deferred constraints are checked at commit."""
    connection = connections[ALIAS]
    quoted = connection.ops.quote_name
    table, key = quoted(model._meta.db_table), quoted(model._meta.pk.attname)
    with transaction.atomic(using=ALIAS), connection.cursor() as cursor:
        cursor.execute(
            f"DELETE FROM {table} WHERE {key} IN "  # noqa: S608 -- names of a model
            f"(SELECT {key} FROM {table} WHERE tenant_id = %s LIMIT {BATCH_ROWS})",
            (tenant_id,),
        )
        return int(cursor.rowcount)


def _clean_limits(tenant_id: UUID) -> None:
    """Delete the rate limiter's counters. Those of credentials are found by credential id."""
    keys = ApiKey.unscoped.using(ALIAS).filter(tenant_id=tenant_id).values_list("pk", flat=True)
    names = {
        limit.storage_key
        for pk in keys
        for limit in request_limits(str(tenant_id), str(pk), LIMITS)
    }
    with Redis.from_url(environment().limits, socket_timeout=VALKEY_TIMEOUT_S) as valkey:
        names.update(key.decode() for key in valkey.scan_iter(match=f"*{tenant_id}*", count=1000))
        if names:
            valkey.unlink(*names)


def find_traces(tenant_id: UUID) -> list[str]:
    """Scan every table and every Valkey server for a tenant. Return where data was found.

    Tables are taken from the catalogue and not from the models, so that an unregistered one is
    found too.
    """
    return [*_traces_in_tables(tenant_id), *_traces_in_valkey(tenant_id)]


def _traces_in_tables(tenant_id: UUID) -> list[str]:
    traces = []
    with connections[ALIAS].cursor() as cursor:
        cursor.execute(
            "SELECT c.relname, a.attname FROM pg_class c "
            "JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped "
            "WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace "
            "AND (a.attname = 'tenant_id' OR (c.relname, a.attname) = ('tenants_tenant', 'id'))"
        )
        for table, column in cursor.fetchall():
            cursor.execute(
                f'SELECT count(*) FROM "{table}" WHERE "{column}" = %s',  # noqa: S608 -- catalogue
                (tenant_id,),
            )
            row = cursor.fetchone()
            if row and row[0]:
                traces.append(f"table {table}: {row[0]}")
    return traces


def _traces_in_valkey(tenant_id: UUID) -> list[str]:
    settings = environment()
    traces = []
    for url in sorted({settings.broker, settings.limits, settings.events}):
        with Redis.from_url(url, socket_timeout=VALKEY_TIMEOUT_S) as valkey:
            keys = valkey.scan_iter(match=f"*{tenant_id}*", count=1000)
            traces += [f"valkey key {key.decode()}" for key in keys]
    return traces
