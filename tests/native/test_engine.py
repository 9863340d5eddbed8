"""The storage engine as Python sees it."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path
from typing import Literal

import pytest

from rillbase_native import Engine, EngineError, KeyspaceOptions


def opened(directory: Path) -> Engine:
    return Engine(directory, {"left": KeyspaceOptions(), "right": KeyspaceOptions()})


def put(engine: Engine, **pairs: str) -> None:
    batch = engine.batch()
    for key, value in pairs.items():
        batch.put("left", key.encode(), value.encode())
    batch.write()


def code(raised: pytest.ExceptionInfo[EngineError]) -> str:
    return raised.value.code


def test_a_batch_over_all_keyspaces_survives_a_reopen(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        batch = engine.batch()
        batch.put("left", b"a", b"1")
        batch.put("right", b"a", b"2")
        batch.delete("left", b"b")
        assert len(batch) == 3
        sequence = batch.write()
        assert len(batch) == 0
    with opened(tmp_path) as engine:
        assert engine.keyspaces() == ["left", "right"]
        assert engine.get("left", b"a") == b"1"
        assert engine.multi_get("right", [b"b", b"a"]) == [None, b"2"]
        assert engine.stats()["sequence"] == sequence


def test_a_scan_is_bounded_and_works_in_both_directions(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        put(engine, a="1", b="2", c="3", d="4")
        assert list(engine.scan("left", b"b", b"d")) == [(b"b", b"2"), (b"c", b"3")]
        backwards = engine.scan("left", b"b", reverse=True)
        assert [key for key, _ in backwards] == [b"d", b"c", b"b"]


def test_a_long_scan_returns_every_entry_once(tmp_path: Path) -> None:
    keys = [f"{number:05}".encode() for number in range(5000)]
    with opened(tmp_path) as engine:
        batch = engine.batch()
        for key in keys:
            batch.put("left", key, key * 3)
        batch.write(sync=False)
        engine.flush()
        assert [key for key, _ in engine.scan("left")] == keys


def test_deleted_ranges_and_expired_values_are_not_found(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        put(engine, a="1", b="2", c="3")
        batch = engine.batch()
        batch.delete_range("left", b"a", b"c")
        batch.put("left", b"old", b"x", expiry_ms=1)
        batch.put("left", b"young", b"x", expiry_ms=2**62)
        batch.write()
        assert [key for key, _ in engine.scan("left")] == [b"c", b"young"]


def test_a_snapshot_does_not_see_what_was_written_later(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        put(engine, a="old")
        with engine.snapshot() as snapshot:
            put(engine, a="new", b="new")
            engine.compact("left")
            assert engine.get("left", b"a", snapshot=snapshot) == b"old"
            assert list(engine.scan("left", snapshot=snapshot)) == [(b"a", b"old")]
        with pytest.raises(EngineError) as raised:
            engine.get("left", b"a", snapshot=snapshot)
        assert code(raised) == "invalid_argument"


def test_the_first_transaction_to_commit_wins(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        put(engine, a="1")
        slow = engine.transaction()
        assert slow.get_for_update("left", b"a") == b"1"
        with engine.transaction() as fast:
            fast.put("left", b"a", b"2")
        slow.put("left", b"b", b"lost")
        with pytest.raises(EngineError) as raised:
            slow.commit()
        assert code(raised) == "conflict"
        assert engine.multi_get("left", [b"a", b"b"]) == [b"2", None]


def test_a_transaction_left_by_an_exception_changes_nothing(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        with suppress(ZeroDivisionError), engine.transaction() as transaction:
            transaction.put("left", b"a", b"1")
            assert transaction.get("left", b"a") == b"1"
            raise ZeroDivisionError
        assert engine.get("left", b"a") is None


def test_what_cannot_be_done_is_refused_by_code(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        with pytest.raises(EngineError, match="middle") as raised:
            engine.get("middle", b"a")
        assert code(raised) == "invalid_argument"
        with pytest.raises(EngineError) as raised:
            Engine(tmp_path)
        assert code(raised) == "locked"
    with pytest.raises(EngineError) as raised:
        engine.get("left", b"a")
    assert code(raised) == "stopped"
    with pytest.raises(ValueError, match="unknown strategy"):
        KeyspaceOptions(strategy="none")  # type: ignore[arg-type]


@pytest.mark.parametrize("strategy", ["leveled", "size_tiered", "lazy_leveled", "time_window"])
def test_options_change_no_answer(
    strategy: Literal["leveled", "size_tiered", "lazy_leveled", "time_window"], tmp_path: Path
) -> None:
    options = KeyspaceOptions(
        strategy=strategy,
        fanout=4,
        runs=2,
        window_ms=1000,
        expiry="by_key",
        compression=("none", "lz4", "zstd"),
        memtable_bytes=10_000,
        table_bytes=10_000,
        base_bytes=20_000,
    )
    expected = {f"key{number:05}".encode(): b"value" * 20 for number in range(1000)}
    for sub_compactions, direct_io in ((1, False), (3, True)):
        with Engine(
            tmp_path,
            {"left": options},
            sub_compactions=sub_compactions,
            direct_io=direct_io,
            table_cache_bytes=100_000,
            memtables_bytes=20_000,
            log_bytes=100_000,
            write_rate=100_000_000,
        ) as engine:
            engine.create_keyspace("left", options)
            for key, value in expected.items():
                batch = engine.batch()
                batch.put("left", key, value)
                batch.write(sync=False)
            assert dict(engine.scan("left")) == expected
            engine.compact("left")
            assert dict(engine.scan("left")) == expected
            # Where the file system does not allow it, the system's cache is used.
            assert direct_io or not engine.stats()["direct_io"]


def test_one_budget_bounds_all_memory(tmp_path: Path) -> None:
    budget = 2 << 20
    with Engine(tmp_path, memory_bytes=budget) as engine:
        engine.create_keyspace("left", KeyspaceOptions(compression="none", table_bytes=100_000))
        for start in range(0, 6000, 100):
            batch = engine.batch()
            for number in range(start, start + 100):
                batch.put("left", number.to_bytes(4, "big"), bytes(1000))
            batch.write(sync=False)
        assert len(engine.multi_get("left", [n.to_bytes(4, "big") for n in range(6000)])) == 6000
        stats = engine.stats()
        memtables = sum(keyspace["memtable_bytes"] for keyspace in stats["keyspaces"])
        # A memtable takes memory in pieces.
        assert memtables + stats["cache_bytes"] + stats["open_table_bytes"] <= budget + (1 << 20)
        assert stats["flushes"] > 2


def test_a_backup_reports_its_progress(tmp_path: Path) -> None:
    received: list[tuple[int, int]] = []
    with opened(tmp_path / "database") as engine:
        put(engine, **{f"key{number}": "value" for number in range(100)})
        result = engine.backup(tmp_path / "backup", lambda done, total: received.append((done, total)))
    assert received == sorted(received)
    assert received[-1] == (2 * result["table_bytes"], 2 * result["table_bytes"])


def test_a_head_finds_its_keys_of_any_tail(tmp_path: Path) -> None:
    options = KeyspaceOptions(tail_bytes=8)
    with Engine(tmp_path, {"lists": options}) as engine:
        engine.create_keyspace("lists", options)
        for number in range(10):
            batch = engine.batch()
            for name in (b"one", b"two"):
                batch.put("lists", name + number.to_bytes(8, "big"), bytes([number]))
            batch.write()
            engine.flush()
        assert [value for _, value in engine.scan_head("lists", b"two")] == [
            bytes([number]) for number in range(10)
        ]
        newest, _ = next(engine.scan_head("lists", b"one", reverse=True))
        assert newest == b"one" + (9).to_bytes(8, "big")
        assert list(engine.scan_head("lists", b"six")) == []


def test_damage_names_file_and_offset(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        put(engine, **{f"key{number}": "value" for number in range(100)})
        engine.flush()
    table = next(tmp_path.glob("*.table"))
    damaged = bytearray(table.read_bytes())
    damaged[5] ^= 1
    table.write_bytes(damaged)
    with opened(tmp_path) as engine, pytest.raises(EngineError) as raised:
        list(engine.scan("left"))
    assert code(raised) == "corruption"
    assert raised.value.file == str(table)
    assert raised.value.offset is not None


def test_threads_write_at_once(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:

        def write(name: str) -> None:
            for number in range(50):
                put(engine, **{f"{name}{number}": name})

        threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(list(engine.scan("left"))) == 200


def test_a_checkpoint_is_an_independent_database(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    with opened(tmp_path / "database") as engine:
        put(engine, a="1")
        engine.checkpoint(copy)
        put(engine, a="2")
    with opened(copy) as engine:
        assert engine.get("left", b"a") == b"1"
