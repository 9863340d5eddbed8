"""Removes a source: first what it created in its owner's database, then its row.

If the database is unreachable, removal is retried for a day, while the source is listed with the
reason. Then the row is deleted anyway, and the tenant's error log and the process log contain the
statements that drop the leftovers.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial

import psycopg
from django.db.models import F
from django.db.models.functions import Coalesce
from django.utils import timezone

from foundation.errors import ApiError
from foundation.sealing import SealBroken
from sources.conditions import SourceUnsuitable, of_error
from sources.connection import is_internal
from sources.following.follower import info_of
from sources.following.rows import ALIAS, on_rows
from sources.following.upkeep import drop_upstream
from sources.models import Source
from sources.upstream.session import session
from sources.upstream.slot import statements_that_drop
from tenants import error_log

logger = logging.getLogger(__name__)

RETRY_S = 15.0
#: Timeout of one attempt: a database may accept a connection and never respond.
ATTEMPT_TIMEOUT_S = 60.0
MAX_DETAIL_CHARS = 500

#: An error code and a message.
Failure = tuple[str, str]


async def remove(row: Source) -> None:
    """Remove a source, upstream and in Rillbase."""
    source = await on_rows(partial(_begin, row))
    if source is None:
        return
    while (failure := await try_upstream(source)) is not None:
        if (deadline := source.removing_until) is not None and timezone.now() >= deadline:
            _report_leftovers(source, failure)
            break
        await on_rows(partial(_note, source, failure))
        await asyncio.sleep(RETRY_S)
    await on_rows(partial(_delete, source))


async def try_upstream(row: Source) -> Failure | None:
    """Drop slot and publication. Return the failure, or None."""
    info = ""
    try:
        info = await info_of(row)
        async with asyncio.timeout(ATTEMPT_TIMEOUT_S), session(info) as connection:
            await drop_upstream(connection, row)
    except ApiError as error:
        return "unreachable", error.detail or error.title
    except SourceUnsuitable as unfit:
        return unfit.code, unfit.detail
    except (psycopg.Error, OSError) as error:
        return of_error(error, is_internal=is_internal(info))
    except SealBroken:
        return "internal", (
            "The connection cannot be decrypted, because it was stored under another secret."
        )
    return None


def _begin(row: Source) -> Source | None:
    """Record when removal began. Idempotent."""
    rows = Source.unscoped.using(ALIAS).filter(pk=row.pk)
    rows.update(
        desired_state=Source.DesiredState.REMOVED,
        state=Source.State.REMOVING,
        fence=F("fence") + 1,
        removing_since=Coalesce("removing_since", timezone.now()),
    )
    return rows.first()


def _note(row: Source, failure: Failure) -> None:
    """Record why the source has not been removed yet."""
    code, detail = failure
    if row.condition != code:
        row.condition_since = timezone.now()
        _log_error(row, "source_removal_waits", f"{detail} Removal is retried for a day.")
    row.condition, row.detail = code, detail[:MAX_DETAIL_CHARS]
    Source.unscoped.using(ALIAS).filter(pk=row.pk).update(
        condition=row.condition, detail=row.detail, condition_since=row.condition_since
    )


def _report_leftovers(row: Source, failure: Failure) -> None:
    drops = " ".join(statements_that_drop(row.pk))
    _log_error(row, "source_left_behind", f"Run this in {row.connection}: {drops} {failure[1]}")
    logger.warning(
        "a slot and a publication remain in a tenant's database",
        extra={"source": str(row.pk), "connection": row.connection, "drop": drops},
    )


def _log_error(row: Source, code: str, detail: str) -> None:
    error_log.note(
        row.tenant_id, error_log.Area.SOURCE, code, place=row.collection_name, detail=detail
    )


def _delete(row: Source) -> None:
    Source.unscoped.using(ALIAS).filter(pk=row.pk).delete()
