"""Uploads that are small and become huge, or claim to be, from a tenant with ordinary quotas."""

from __future__ import annotations

import asyncio
import http.client
import io
import json
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.support.duty import Duty

#: Concurrent uploads, and the pause after each.
AT_ONCE, PAUSE_S = 4, 0.2
TIMEOUT_S = 60.0
DATASET, TABLE = "bombs", "t"
#: The table of the uploads.
DEFINITION = {
    "name": DATASET,
    "tables": {TABLE: {"columns": {"place": "string", "item": "int64"}, "key": ["place", "item"]}},
}
#: One string of a megabyte, two thousand times: 2 GB when decoded.
_TEXT_BYTES, _TEXT_ROWS = 1_000_000, 2_000
#: Numbers that compress well: 64 MB.
_NUMBERS = 8_000_000
#: A number of rows that occurs nowhere else in a stream, and the claimed number.
_ROWS, _CLAIMED_ROWS = 7_919, 1 << 40
_LINES_BYTES = 1 << 30
_PARQUET = "application/vnd.apache.parquet"
_ARROW = "application/vnd.apache.arrow.stream"
_NDJSON = "application/x-ndjson"


@dataclass(frozen=True, slots=True)
class Bomb:
    """One request's body."""

    path: str
    media_type: str
    body: bytes
    encoding: str = ""


async def run(port: int, key: str, bombs: Sequence[Bomb], duty: Duty) -> None:
    """Attack until cancelled."""
    async with asyncio.TaskGroup() as attacks:
        for first in range(AT_ONCE):
            attacks.create_task(_again(port, key, [*bombs[first:], *bombs[:first]], duty))


async def _again(port: int, key: str, bombs: Sequence[Bomb], duty: Duty) -> None:
    while True:
        for bomb in bombs:
            await asyncio.to_thread(_upload, port, key, bomb)
            await asyncio.sleep(PAUSE_S)
            await duty.pause()


def _upload(port: int, key: str, bomb: Bomb) -> None:
    headers = {"Authorization": f"Bearer {key}", "Content-Type": bomb.media_type}
    if bomb.encoding:
        headers["Content-Encoding"] = bomb.encoding
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    try:
        connection.request("POST", bomb.path, bomb.body, headers)
        connection.getresponse().read()
    except (OSError, http.client.HTTPException):
        # The server may disconnect an attacker.
        pass
    finally:
        connection.close()


def bombs(collection: str) -> list[Bomb]:
    """Generate all bodies. They are a few kilobytes, except for the lines, which are a megabyte."""
    uploads, imports = (
        f"/v1/datasets/{DATASET}/uploads?table={TABLE}",
        f"/v1/collections/{collection}/import",
    )
    return [
        Bomb(uploads, _PARQUET, _dictionary()),
        Bomb(uploads, _ARROW, _false_length()),
        Bomb(uploads, _ARROW, _compressed()),
        Bomb(imports, _NDJSON, _lines(), "gzip"),
        Bomb(uploads, _NDJSON, _lines(), "gzip"),
    ]


def _dictionary() -> bytes:
    place = pa.DictionaryArray.from_arrays(
        pa.array([0] * _TEXT_ROWS, pa.int32()), pa.array(["x" * _TEXT_BYTES])
    )
    table = pa.table({"place": place, "item": pa.array(range(_TEXT_ROWS), pa.int64())})
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd", use_dictionary=["place"], store_schema=False)
    return sink.getvalue()


def _stream(batch: pa.RecordBatch, compression: str | None) -> bytes:
    sink = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def _false_length() -> bytes:
    numbers = pa.array([1] * _ROWS, pa.int64())
    places = pa.array(["a"] * _ROWS)
    stream = _stream(pa.record_batch({"place": places, "item": numbers}), "zstd")
    return stream.replace(struct.pack("<q", _ROWS), struct.pack("<q", _CLAIMED_ROWS))


def _compressed() -> bytes:
    zeros = pa.py_buffer(bytes(8 * _NUMBERS))
    numbers = pa.Array.from_buffers(pa.int64(), _NUMBERS, [None, zeros])
    offsets = pa.py_buffer(bytes(4 * (_NUMBERS + 1)))
    places = pa.Array.from_buffers(pa.string(), _NUMBERS, [None, offsets, pa.py_buffer(b"")])
    return _stream(pa.record_batch({"place": places, "item": numbers}), "zstd")


def _lines() -> bytes:
    deflate = zlib.compressobj(9, zlib.DEFLATED, 31)
    line = json.dumps({"text": " " * 1_000_000}).encode() + b"\n"
    parts = [deflate.compress(line) for _ in range(_LINES_BYTES // len(line))]
    return b"".join(parts) + deflate.flush()
