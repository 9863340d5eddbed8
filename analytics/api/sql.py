"""POST sql: the result of a statement, as it is computed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress

from analytics.api.dataset_access import dataset_of, in_scope, while_connected
from analytics.facts import READ, DatasetFacts
from analytics.media_types import CSV, JSON
from analytics.query.files import ReadPlan
from analytics.query.plan import plan_tables
from analytics.sql.request import FORMATS, StatementRequest, read_request
from analytics.sql.statement_run import EXPLANATIONS, StatementRun
from data_plane.calls import Call
from data_plane.http import CallResponse
from data_plane.request_reader import parameters, read_body
from foundation.asgi import App, Receive, Scope, Send
from foundation.errors import ApiError, FieldProblem, InvalidBody, QueryTooExpensive
from foundation.json_body import parse_json_body
from foundation.sandbox.failures import JobFailed

logger = logging.getLogger(__name__)

#: Enough for a statement with full lists as parameters.
MAX_BODY_BYTES = 4 * 1024 * 1024


async def execute(call: Call) -> CallResponse:
    """POST sql."""
    parameters(call)
    dataset, request, run = await _read(call)
    try:
        await while_connected(call, run.start())
    except BaseException:
        await run.aclose()
        raise
    return CallResponse(app=_streaming(call, run, _headers(dataset.name, request, run)))


async def execute_whole(call: Call) -> CallResponse:
    """POST sql for a field of GraphQL: the result is JSON, and complete."""
    _, request, run = await _read(call)
    if request.media_type != JSON:
        detail = "A field has its result as `json`."
        raise InvalidBody(detail, errors=[FieldProblem("/format", "invalid", detail)])
    try:
        await run.start()
        return CallResponse(body=b"".join([part async for part in run.parts()]))
    except JobFailed as error:
        raise QueryTooExpensive(EXPLANATIONS[error.reason]) from None
    finally:
        await run.aclose()


async def _read(call: Call) -> tuple[DatasetFacts, StatementRequest, StatementRun]:
    """Return what a call asks for."""
    dataset = await dataset_of(call, READ)
    body = parse_json_body(await read_body(call, max_bytes=MAX_BODY_BYTES))
    request = read_request(body, call.head.headers.get("Accept", ""))

    async def plan(tables: list[str]) -> Mapping[str, ReadPlan]:
        return await in_scope(call, lambda: plan_tables(dataset, tables, request.wanted))

    return dataset, request, StatementRun(dataset, request, plan)


def _headers(name: str, request: StatementRequest, run: StatementRun) -> dict[str, str]:
    media_type = request.media_type
    headers = {
        "Content-Type": f"{CSV}; charset=utf-8" if media_type == CSV else media_type,
        "Rillbase-State": str(run.state),
        "Rillbase-Freshness": str(run.freshness_s),
        "Rillbase-Engine": run.engine,
    }
    if media_type != JSON:
        ending = next(ending for ending, kind in FORMATS.items() if kind == media_type)
        headers["Content-Disposition"] = f'attachment; filename="{name}.{ending}"'
    return headers


def _streaming(
    call: Call, run: StatementRun, headers: Mapping[str, str]
) -> Callable[[Mapping[str, str]], App]:
    """Return what responds with the result of a statement that has begun."""

    def respond(more_headers: Mapping[str, str]) -> App:
        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            try:
                pairs = {**more_headers, **headers}.items()
                raw = [(n.lower().encode(), value.encode("latin-1")) for n, value in pairs]
                await send({"type": "http.response.start", "status": 200, "headers": raw})
                await _send_parts(call, run.parts(), send)
            finally:
                await run.aclose()

        return app

    return respond


async def _send_parts(call: Call, parts: AsyncIterator[bytes], send: Send) -> None:
    """Send a result while the caller is connected.

    A result that breaks off has no end, which the caller sees as a broken connection.
    """
    closed = asyncio.ensure_future(call.body.closed())
    try:
        while True:
            following = asyncio.ensure_future(anext(parts, b""))
            await asyncio.wait({following, closed}, return_when=asyncio.FIRST_COMPLETED)
            if not following.done():
                following.cancel()
                with suppress(asyncio.CancelledError):
                    await following
                return
            part = following.result()
            if not part:
                break
            await send({"type": "http.response.body", "body": part, "more_body": True})
    except (JobFailed, ApiError) as error:
        logger.warning("the result of a statement broke off: %s", error)
        return
    finally:
        closed.cancel()
        with suppress(asyncio.CancelledError):
            await closed
    await send({"type": "http.response.body", "body": b""})
