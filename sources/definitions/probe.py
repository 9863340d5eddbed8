"""Checks a source's database while the caller waits for the response.

A database may hang on purpose, so few probes run at once, and each has a deadline.
"""

from __future__ import annotations

import asyncio
from threading import BoundedSemaphore

import psycopg

from foundation.errors import FieldProblem, SourceUnreachable
from sources.conditions import SourceUnsuitable, of_error
from sources.connection import DatabaseAddress, addresses, conninfo, is_internal
from sources.upstream.catalog import SourceTable, TableSpec, read_table
from sources.upstream.session import session

PROBES_AT_ONCE = 4
TIMEOUT_S = 10.0
#: Duration of a failing probe of an internal database, and its deadline.
INTERNAL_FAILURE_S = 3.0
_probes = BoundedSemaphore(PROBES_AT_ONCE)


def probe(target: DatabaseAddress, spec: TableSpec) -> SourceTable:
    """Return the table, or raise an error for the caller."""
    if not _probes.acquire(blocking=False):
        raise SourceUnreachable("Too many databases are being checked at the moment. Retry.")
    try:
        return asyncio.run(_probe(target, spec))
    except SourceUnsuitable as unfit:
        raise unfit.as_refusal() from None
    finally:
        _probes.release()


async def _probe(target: DatabaseAddress, spec: TableSpec) -> SourceTable:
    info = conninfo(target, await asyncio.to_thread(addresses, target))
    if is_internal(info):
        return await _probe_internal(info, spec)
    try:
        async with asyncio.timeout(TIMEOUT_S):
            return await _read_table(info, spec)
    except TimeoutError:
        raise _unreachable("unreachable", "The database did not respond in time.") from None
    except (psycopg.Error, OSError) as error:
        raise _unreachable(*of_error(error, is_internal=False)) from None


async def _probe_internal(info: str, spec: TableSpec) -> SourceTable:
    """Probe a database within our networks. All failures look the same and take equally long."""
    ends = asyncio.get_running_loop().time() + INTERNAL_FAILURE_S
    try:
        async with asyncio.timeout_at(ends):
            return await _read_table(info, spec)
    except (psycopg.Error, OSError) as error:
        problem = of_error(error, is_internal=True)
    await asyncio.sleep(max(0.0, ends - asyncio.get_running_loop().time()))
    raise _unreachable(*problem)


async def _read_table(info: str, spec: TableSpec) -> SourceTable:
    # Nothing is copied, so no large rows are accepted.
    async with session(info, row_bytes=0) as connection:
        return await read_table(connection, spec)


def _unreachable(code: str, detail: str) -> SourceUnreachable:
    return SourceUnreachable(detail, errors=[FieldProblem("/connection", code, detail)])
