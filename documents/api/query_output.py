"""Results of queries as files."""

from __future__ import annotations

from data_plane.calls import Call
from data_plane.http import CallResponse
from data_plane.request_reader import canonical
from documents.transfer.formats import NDJSON, PARQUET
from documents.transfer.output import Output, OutputFormat, check_count, requests_csv
from documents.transfer.parquet.parquet_output import parquet_file
from rillbase_native import Value


def query_output(call: Call) -> Output | None:
    """Return the file format that the header `Accept` requests, if it requests one."""
    accept = call.head.headers.get("Accept", "")
    if requests_csv(accept):
        return Output(OutputFormat.CSV)
    if PARQUET in accept:
        return Output(OutputFormat.PARQUET)
    return Output(OutputFormat.NDJSON) if NDJSON in accept else None


async def file_of(call: Call, name: str, items: bytes, output: Output) -> CallResponse:
    """Respond with the documents of a result, given as canonical Extended JSON."""
    found = (item.get("document") for item in Value.parse(items).items())
    documents = [document for document in found if document is not None]
    names = list(dict.fromkeys(name for document in documents for name in document.names()))
    if output.format is not OutputFormat.NDJSON:
        check_count(names)
    if output.format is OutputFormat.PARQUET:
        text = await parquet_file(call.tenant.id, documents)
    elif output.format is OutputFormat.CSV:
        writer = output.csv_writer(names or ["_id"])
        text = writer.header() + writer.rows([document.bson() for document in documents])
    else:
        form = canonical(call)
        text = b"".join(document.ejson(canonical=form) + b"\n" for document in documents)
    return CallResponse(200, text, output.headers(name), media_type=output.media_type)
