"""Reading CSV: as records, documents and columns, compared with Python's and pyarrow's readers.

    python -m benchmarks.csv_files [--rows 200000]

Prints MB and records per second of CPU time, the best of three runs each.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.csv

from rillbase_native import CsvReader, CsvRecords, DocumentMapping, Value

RUNS = 3
PART_BYTES, BLOCK_BYTES = 64 * 1024, 4 * 1024 * 1024
TYPES = ("number", "string", "number", "boolean", "date", "string")
KINDS = ("int64", "string", "double", "bool", "date", "string")


@dataclass(frozen=True)
class CsvFile:
    """A file of products."""

    text: str
    body: bytes

    @classmethod
    def of(cls, rows: int) -> CsvFile:
        lines = (
            f'{n},"Product, no {n}",{n / 4},true,2026-11-21,some text of usual length {n}\n'
            for n in range(rows)
        )
        text = "id,name,price,active,added,note\n" + "".join(lines)
        return cls(text, text.encode())

    def blocks(self, size: int) -> Iterator[CsvRecords]:
        reader = CsvReader()
        for start in range(0, len(self.body), size):
            yield reader.push(self.body[start : start + size])


def records(file: CsvFile) -> None:
    for block in file.blocks(PART_BYTES):
        len(block)


def python_records(file: CsvFile) -> None:
    for _ in csv.reader(io.StringIO(file.text, newline=""), strict=True):
        pass


def documents(file: CsvFile) -> None:
    mapping: DocumentMapping | None = None
    for block in file.blocks(PART_BYTES):
        first = 0
        if mapping is None:
            names, first = [name or "" for name in block.fields(0)], 1
            columns = [(name, name, kind) for name, kind in zip(names, TYPES, strict=True)]
            mapping = DocumentMapping(columns).for_header(names)
        for record in range(first, len(block)):
            block.document(record, mapping)


def python_documents(file: CsvFile) -> None:
    rows = csv.DictReader(io.StringIO(file.text, newline=""), strict=True)
    for row in rows:
        typed = {
            "id": int(row["id"]),
            "name": row["name"],
            "price": float(row["price"]),
            "active": row["active"] == "true",
            "added": {"$date": f"{row['added']}T00:00:00Z"},
            "note": row["note"],
        }
        Value.parse_document(json.dumps(typed).encode())


def columns(file: CsvFile) -> None:
    for number, block in enumerate(file.blocks(BLOCK_BYTES)):
        for record, kind in enumerate(KINDS):
            block.column(0 if number else 1, record, kind, max_problems=10)


def arrow_columns(file: CsvFile) -> None:
    pa.csv.read_csv(
        io.BytesIO(file.body),
        read_options=pa.csv.ReadOptions(use_threads=False),
        convert_options=pa.csv.ConvertOptions(column_types={"added": pa.date32()}),
    )


def best_s(read: Callable[[CsvFile], None], file: CsvFile) -> float:
    times = []
    for _ in range(RUNS):
        began = time.process_time()
        read(file)
        times.append(time.process_time() - began)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=200_000)
    rows = parser.parse_args().rows
    file = CsvFile.of(rows)
    for read in (
        records,
        python_records,
        documents,
        python_documents,
        columns,
        arrow_columns,
    ):
        seconds = best_s(read, file)
        speed = len(file.body) / seconds / 1e6
        sys.stdout.write(
            f"{read.__name__:17} {speed:6.0f} MB/s {rows / seconds:11,.0f} records/s\n"
        )


if __name__ == "__main__":
    main()
