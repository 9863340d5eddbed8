"""POST query: rows of a table, as fresh as requested."""

from __future__ import annotations

from collections.abc import Callable

from analytics.api.answer_files import ANSWER_FILES, answer_file, plain_rows
from analytics.api.dataset_access import dataset_of, in_scope, in_thread
from analytics.facts import READ, DatasetFacts
from analytics.query.files import ReadPlan
from analytics.query.plan import plan
from analytics.query.query_parser import MAX_FILE_LIMIT, MAX_LIMIT, AnalyticsQuery, read_query
from analytics.query.remote_scan import RemoteScan
from analytics.query.run import ScanResult, prepare, run
from data_plane.calls import Call
from data_plane.http import CallResponse, json_answer
from data_plane.request_reader import parameters, read_body
from foundation.api.rendering import to_json
from foundation.errors import InvalidBody, StateExpired
from foundation.json_body import parse_json_body
from foundation.json_types import JsonObject

#: Enough for a filter with several full `$in` lists. Parsed JSON takes many times this memory.
MAX_QUERY_BYTES = 4 * 1024 * 1024


async def query(call: Call) -> CallResponse:
    """POST query."""
    parameters(call)
    dataset = await dataset_of(call, READ)
    body = parse_json_body(await read_body(call, max_bytes=MAX_QUERY_BYTES))
    if not isinstance(body, dict):
        raise InvalidBody("The body must be a JSON object.")
    form = _requested(call.head.headers.get("Accept", ""))
    query_ = read_query(body, dataset.tables, MAX_LIMIT if form is None else MAX_FILE_LIMIT)
    result = await _run(call, dataset, body, query_)
    if form is None:
        rows = await in_thread(lambda: plain_rows(result.rows))
        return json_answer({"rows": rows, **_describe(result)})
    table = result.rows.replace_schema_metadata(_metadata(result))
    name = f"{dataset.name}-{query_.table.name}"
    return await in_thread(lambda: answer_file(form, name, table))


def _requested(accept: str) -> str | None:
    """Return the media type of the file that `Accept` requests, if it requests one."""
    return next((media_type for media_type in ANSWER_FILES if media_type in accept), None)


async def _run(
    call: Call, dataset: DatasetFacts, body: JsonObject, query_: AnalyticsQuery
) -> ScanResult:
    """Plan and run the query; plan again once if files were replaced in the meantime."""

    def plan_files() -> ReadPlan:
        return plan(dataset, query_.table.name, query_.wanted)

    for _ in range(2):
        files = await in_scope(call, plan_files)
        try:
            result = await in_thread(_start(dataset, body, query_, files))
            return (
                result if isinstance(result, ScanResult) else await result.result(call.body.closed)
            )
        except FileNotFoundError:
            continue
    raise StateExpired("The files of this state are no longer retained.")


def _start(
    dataset: DatasetFacts, body: JsonObject, query_: AnalyticsQuery, files: ReadPlan
) -> Callable[[], ScanResult | RemoteScan]:
    """Return a function that answers the query, or returns a scan for workers if it is large."""

    def start() -> ScanResult | RemoteScan:
        prepared = prepare(query_, files)
        scan = RemoteScan(dataset, body, query_, files, prepared)
        return scan if scan.is_large else run(query_, files, prepared)

    return start


def _describe(result: ScanResult) -> JsonObject:
    return {
        "state": result.state,
        "freshness_s": result.freshness_s,
        "read": result.read,
    }


def _metadata(result: ScanResult) -> dict[bytes, bytes]:
    """Return what describes the result in the metadata of Arrow and Parquet."""
    described = _describe(result).items()
    return {f"rillbase.{name}".encode(): to_json(value) for name, value in described}
