"""A paused source: no changes are applied, and its slot is kept within its limit."""

from __future__ import annotations

import asyncio

import psycopg

from foundation.errors import ApiError
from sources.conditions import SourceUnsuitable, of_error
from sources.connection import is_internal
from sources.following.follower import info_of
from sources.following.progress import FollowerFenced, SourceProgress
from sources.following.upkeep import keep_within_bounds
from sources.models import Source
from sources.upstream.catalog import LOOK_TIMEOUT_S
from sources.upstream.session import session

CHECK_S = 5.0


async def pause(row: Source) -> None:
    """Maintain the slot of a paused source until cancelled."""
    progress = await SourceProgress.acquire(row.pk)
    while True:
        try:
            await progress.report_state(Source.State.PAUSED)
            await _check(progress)
        except FollowerFenced:
            return
        await asyncio.sleep(CHECK_S)


async def _check(progress: SourceProgress) -> None:
    info = ""
    try:
        info = await info_of(progress.row)
        async with asyncio.timeout(LOOK_TIMEOUT_S), session(info) as connection:
            await keep_within_bounds(connection, progress)
    except ApiError as error:
        await progress.report_state(Source.State.PAUSED, "unreachable", error.detail or error.title)
    except SourceUnsuitable as unfit:
        await progress.report_state(Source.State.PAUSED, unfit.code, unfit.detail)
    except (psycopg.Error, OSError) as error:
        await progress.report_state(
            Source.State.PAUSED, *of_error(error, is_internal=is_internal(info))
        )
