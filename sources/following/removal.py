"""A source's end: what it has made in its owner's database goes, then its row.

The database may be away. Then it is tried again for a day, after which the row goes all the same,
and the tenant's error log says what was left behind.
"""

from __future__ import annotations

import asyncio
import datetime

import psycopg
from django.db import connections
from django.utils import timezone

from foundation.errors import ApiError
from foundation.sealing import SealBroken
from sources.following.follower import info_of
from sources.following.upkeep import forget_upstream
from sources.models import Source
from sources.upstream.session import session
from sources.upstream.slot import publication_name
from tenants import error_log

ALIAS = "relay"
RETRY_S = 15.0
GIVEN_UP_AFTER = datetime.timedelta(days=1)


async def remove(row: Source) -> None:
    """Remove a source from both sides."""
    while True:
        failure = await try_upstream(row)
        if not failure:
            break
        if timezone.now() - row.updated_at > GIVEN_UP_AFTER:
            _tell_what_stays(row, failure)
            break
        await asyncio.sleep(RETRY_S)
    await asyncio.to_thread(_delete, row)


async def try_upstream(row: Source) -> str:
    """Drop slot and publication. Return why that cannot be done; empty: it is done."""
    try:
        info = await info_of(row)
        async with session(info) as connection:
            await forget_upstream(connection, row)
    except ApiError as refused:
        return refused.detail or refused.title
    except (psycopg.Error, OSError, SealBroken) as failed:
        return str(failed)
    return ""


def _tell_what_stays(row: Source, failure: str) -> None:
    error_log.note(
        row.tenant_id,
        error_log.Area.SOURCE,
        "source_left_behind",
        place=row.collection_name,
        detail=f"Drop the slot and the publication {publication_name(row.pk)}… yourself: {failure}",
    )


def _delete(row: Source) -> None:
    try:
        Source.unscoped.using(ALIAS).filter(pk=row.pk).delete()
    finally:
        connections[ALIAS].close()
