"""Small uploads that decompress to gigabytes, and mutations of ordinary ones."""

from __future__ import annotations

import io
import random
import struct
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.analytics.dataset_client import ARROW, NDJSON, PARQUET, Json, as_arrow, as_lines

KIB, MIB = 1024, 1024 * 1024
#: Lengths and counts that have broken decoders.
_EXTREMES = (0, 1, 2**7, 2**8 - 1, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1)
_ROWS = 200


def repeated(text_bytes: int, rows: int) -> pa.Table:
    """Return rows that all refer to one long text of a dictionary."""
    texts = pa.DictionaryArray.from_arrays(
        pa.array([0] * rows, pa.int32()), pa.array(["x" * text_bytes])
    )
    return pa.table({"id": pa.array([7] * rows, pa.int64()), "customer": texts})


def parquet(rows: pa.Table, **options: object) -> bytes:
    sink = io.BytesIO()
    pq.write_table(rows, sink, **{"compression": "zstd", "store_schema": False, **options})
    return sink.getvalue()


def compressed_arrow(rows: pa.Table, codec: str) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=codec)
    with pa.ipc.new_stream(sink, rows.schema, options=options) as writer:
        writer.write_table(rows)
    return bytes(sink.getvalue())


def views(text_bytes: int, rows: int) -> pa.Table:
    """Return rows whose views all refer to one long text."""
    view = struct.pack("<iiii", text_bytes, 0x78787878, 0, 0)
    buffers = [None, pa.py_buffer(view * rows), pa.py_buffer(b"x" * text_bytes)]
    column = pa.Array.from_buffers(pa.string_view(), rows, buffers)
    return pa.table({"id": pa.array([7] * rows, pa.int64()), "customer": column})


def runs(rows: int) -> pa.Table:
    """Return two runs that represent many rows."""
    ends = pa.array([1, rows], pa.int32())
    ids = pa.RunEndEncodedArray.from_arrays(ends, pa.array([1, 2], pa.int64()))
    return pa.table({"id": ids})


def lying_length(codec: str) -> bytes:
    """Return a compressed stream whose first buffer claims to have a terabyte."""
    body = bytearray(compressed_arrow(pa.table({"id": list(range(1000))}), codec))
    magic = {"zstd": b"\x28\xb5\x2f\xfd", "lz4": b"\x04\x22\x4d\x18"}[codec]
    place = body.index(magic) - 8
    body[place : place + 8] = struct.pack("<q", 2**40)
    return bytes(body)


BOMBS: Mapping[str, Callable[[], tuple[bytes, str]]] = {
    "a Parquet dictionary": lambda: (parquet(repeated(64 * KIB, 131_072)), PARQUET),
    "Parquet runs": lambda: (
        parquet(pa.table({"id": np.zeros(40_000_000, np.int64)})),
        PARQUET,
    ),
    "an Arrow dictionary": lambda: (
        compressed_arrow(repeated(256 * KIB, 100_000), "zstd"),
        ARROW,
    ),
    "Arrow views": lambda: (as_arrow(views(256 * KIB, 50_000)), ARROW),
    "compressed Arrow buffers": lambda: (
        compressed_arrow(pa.table({"id": np.zeros(50_000_000, np.int64)}), "zstd"),
        ARROW,
    ),
    "a false length, zstd": lambda: (lying_length("zstd"), ARROW),
    "a false length, lz4": lambda: (lying_length("lz4"), ARROW),
    "run-end encoding": lambda: (as_arrow(runs(2**31 - 1)), ARROW),
    "deep nesting": lambda: (
        b'{"orders": {"id": ' + b"[" * 1_000_000 + b"]" * 1_000_000 + b"}}",
        NDJSON,
    ),
    "lines of nothing": lambda: (b"{}\n" * 400_000, NDJSON),
}


def mutants(seed: int, count: int) -> Iterator[tuple[str, bytes, str]]:
    """Yield mutated uploads with their names and media types; a seed always gives the same ones."""
    rng = random.Random(seed)
    bases = list(_bases())
    for number in range(count):
        name, body, media_type = bases[number % len(bases)]
        for _ in range(rng.choice((1, 1, 2, 5))):
            body = rng.choice(_MUTATIONS)(rng, body)
        yield f"{name} {seed}:{number}", body, media_type


def _bases() -> Iterator[tuple[str, bytes, str]]:
    rows = _ordinary()
    for codec in ("none", "snappy", "gzip", "zstd"):
        yield f"parquet {codec}", parquet(rows, compression=codec), PARQUET
    yield "parquet v2", parquet(rows, data_page_version="2.0", row_group_size=50), PARQUET
    plain = parquet(rows, use_dictionary=False, column_encoding={"id": "DELTA_BINARY_PACKED"})
    yield "parquet delta", plain, PARQUET
    yield "arrow", as_arrow(rows), ARROW
    for codec in ("zstd", "lz4"):
        yield f"arrow {codec}", compressed_arrow(rows, codec), ARROW
    yield "arrow dictionary", as_arrow(repeated(100, _ROWS)), ARROW
    yield "arrow views", as_arrow(views(100, _ROWS)), ARROW
    yield "arrow runs", as_arrow(runs(_ROWS)), ARROW
    lines: list[Json] = [
        {"orders": {"id": n, "customer": "ada", "amount": 0.5}} for n in range(_ROWS)
    ]
    lines += [{"orders": {"id": 1, "count": 4}, "op": "update", "null": ["customer"]}]
    yield "lines", as_lines(lines), NDJSON


def _ordinary() -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(_ROWS), pa.int64()),
            "customer": [f"customer {number % 7}" for number in range(_ROWS)],
            "amount": [number / 8 for number in range(_ROWS)],
            "paid": [number % 3 == 0 for number in range(_ROWS)],
        }
    )


def _flip(rng: random.Random, body: bytes) -> bytes:
    place = rng.randrange(len(body))
    return body[:place] + bytes([body[place] ^ 1 << rng.randrange(8)]) + body[place + 1 :]


def _overwrite(rng: random.Random, body: bytes) -> bytes:
    width = rng.choice((1, 2, 4, 8))
    value = rng.choice(_EXTREMES) % (1 << 8 * width)
    place = rng.randrange(len(body))
    if rng.random() < 0.5:  # footers and schemas describe everything else
        place = max(len(body) - 1 - rng.randrange(400), 0)
    return body[:place] + value.to_bytes(width, "little") + body[place + width :]


def _cut(rng: random.Random, body: bytes) -> bytes:
    begin = rng.randrange(len(body))
    return body[:begin] + body[begin + rng.randrange(1, 200) :] or b"\0"


def _repeat(rng: random.Random, body: bytes) -> bytes:
    begin = rng.randrange(len(body))
    part = body[begin : begin + rng.randrange(1, 200)]
    return body[:begin] + part * rng.randrange(2, 20) + body[begin:]


_MUTATIONS = (_flip, _overwrite, _overwrite, _cut, _repeat)
