"""Key-value stores by their Python packages: ours, rocksdict, plyvel, lmdb, and SQLite.

All put the same entries in batches of a hundred without waiting for the disk, read single keys at
random and scan all entries. The figures are those of a Python program, including the bindings.
"""

from __future__ import annotations

import contextlib
import importlib.util
import random
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from benchmarks.support.report import median
from rillbase_native import Engine, KeyspaceOptions

_ENTRIES = 300_000
_READS = 50_000
_BATCH = 100
_VALUE_BYTES = 100

_Pairs: TypeAlias = list[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class _Store:
    """How a store is accessed."""

    put: Callable[[_Pairs], object]
    get: Callable[[bytes], bytes | None]
    scan: Callable[[], Iterable[object]]


_Opening: TypeAlias = Callable[[Path], AbstractContextManager[_Store]]


@contextlib.contextmanager
def _ours(path: Path) -> Iterator[_Store]:
    engine = Engine(path)
    engine.create_keyspace("bench", KeyspaceOptions(compression="none"))

    def put(pairs: _Pairs) -> None:
        batch = engine.batch()
        for key, value in pairs:
            batch.put("bench", key, value)
        batch.write(sync=False)

    yield _Store(put, lambda key: engine.get("bench", key), lambda: engine.scan("bench"))
    engine.close()


@contextlib.contextmanager
def _rocksdict(path: Path) -> Iterator[_Store]:
    from rocksdict import DBCompressionType, Options, Rdict, WriteBatch  # noqa: PLC0415 - may be missing

    options = Options(raw_mode=True)
    options.set_compression_type(DBCompressionType.none())
    database = Rdict(str(path), options)

    def put(pairs: _Pairs) -> None:
        batch = WriteBatch(raw_mode=True)
        for key, value in pairs:
            batch.put(key, value)
        database.write(batch)

    yield _Store(put, database.get, database.items)
    database.close()


@contextlib.contextmanager
def _plyvel(path: Path) -> Iterator[_Store]:
    import plyvel  # noqa: PLC0415 - may be missing

    database = plyvel.DB(str(path), create_if_missing=True, compression=None)

    def put(pairs: _Pairs) -> None:
        with database.write_batch() as batch:
            for key, value in pairs:
                batch.put(key, value)

    yield _Store(put, database.get, database.iterator)
    database.close()


@contextlib.contextmanager
def _lmdb(path: Path) -> Iterator[_Store]:
    import lmdb  # noqa: PLC0415 - may be missing

    environment = lmdb.open(str(path), map_size=1 << 33, sync=False)

    def put(pairs: _Pairs) -> None:
        with environment.begin(write=True) as transaction:
            for key, value in pairs:
                transaction.put(key, value)

    def get(key: bytes) -> bytes | None:
        with environment.begin() as transaction:
            value: bytes | None = transaction.get(key)
            return value

    def scan() -> Iterator[object]:
        with environment.begin() as transaction:
            yield from transaction.cursor()

    yield _Store(put, get, scan)
    environment.close()


@contextlib.contextmanager
def _sqlite(path: Path) -> Iterator[_Store]:
    path.mkdir(parents=True)
    connection = sqlite3.connect(path / "data")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("CREATE TABLE bench (key BLOB PRIMARY KEY, value BLOB) WITHOUT ROWID")

    def put(pairs: _Pairs) -> None:
        with connection:
            connection.executemany("INSERT OR REPLACE INTO bench VALUES (?, ?)", pairs)

    def get(key: bytes) -> bytes | None:
        row = connection.execute("SELECT value FROM bench WHERE key = ?", (key,)).fetchone()
        return row[0] if row else None

    yield _Store(put, get, lambda: connection.execute("SELECT key, value FROM bench ORDER BY key"))
    connection.close()


_STORES: Mapping[str, tuple[str, _Opening]] = {
    "rillbase": ("rillbase_native", _ours),
    "rocksdict": ("rocksdict", _rocksdict),
    "plyvel": ("plyvel", _plyvel),
    "lmdb": ("lmdb", _lmdb),
    "sqlite": ("sqlite3", _sqlite),
}


def compare(directory: Path, scale: float, rounds: int) -> dict[str, dict[str, float] | None]:
    """Return the seconds per operation by store and workload; None if a package is missing."""
    installed = [name for name in _STORES if importlib.util.find_spec(_STORES[name][0])]
    durations: dict[str, dict[str, list[float]]] = {name: {} for name in installed}
    for number in range(rounds):
        turn = number % len(installed)
        checksums = {}
        for name in (*installed[turn:], *installed[:turn]):
            path = directory / f"python-{name}"
            figures, checksums[name] = _measure(_STORES[name][1], path, scale, number)
            shutil.rmtree(path, ignore_errors=True)
            for workload, seconds in figures.items():
                durations[name].setdefault(workload, []).append(seconds)
        if len(set(checksums.values())) > 1:
            message = f"stores with the same data returned different entries: {checksums}"
            raise AssertionError(message)
    return {
        name: {workload: median(all_seconds) for workload, all_seconds in durations[name].items()}
        if name in durations
        else None
        for name in _STORES
    }


def _measure(
    opening: _Opening, path: Path, scale: float, seed: int
) -> tuple[dict[str, float], tuple[int, int]]:
    """Return the seconds per operation, and the number of entries read and scanned."""
    dice = random.Random(seed)
    count = max(1000, int(_ENTRIES * scale))
    reads = max(1000, int(_READS * scale))
    keys = [b"%016d" % dice.randrange(count) for _ in range(count)]
    read_keys = [b"%016d" % dice.randrange(count) for _ in range(reads)]
    value = dice.randbytes(_VALUE_BYTES)
    with opening(path) as store:
        started = time.perf_counter()
        for at in range(0, count, _BATCH):
            store.put([(key, value) for key in keys[at : at + _BATCH]])
        filled = time.perf_counter()
        hits = sum(store.get(key) is not None for key in read_keys)
        read = time.perf_counter()
        entries = sum(1 for _ in store.scan())
        scanned = time.perf_counter()
    figures = {
        "fillrandom": (filled - started) / count,
        "readrandom": (read - filled) / reads,
        "scan": (scanned - read) / entries,
    }
    return figures, (hits, entries)
