"""The storage engine as Python sees it."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path

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


def test_a_batch_is_there_after_reopening_in_all_keyspaces(tmp_path: Path) -> None:
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


def test_a_scan_is_bounded_and_goes_both_ways(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        put(engine, a="1", b="2", c="3", d="4")
        assert list(engine.scan("left", b"b", b"d")) == [(b"b", b"2"), (b"c", b"3")]
        backwards = engine.scan("left", b"b", reverse=True)
        assert [key for key, _ in backwards] == [b"d", b"c", b"b"]


def test_a_long_scan_gives_every_entry_once(tmp_path: Path) -> None:
    keys = [f"{number:05}".encode() for number in range(5000)]
    with opened(tmp_path) as engine:
        batch = engine.batch()
        for key in keys:
            batch.put("left", key, key * 3)
        batch.write(sync=False)
        engine.flush()
        assert [key for key, _ in engine.scan("left")] == keys


def test_a_range_is_deleted_and_an_expired_value_is_gone(tmp_path: Path) -> None:
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
    with pytest.raises(ValueError, match="no strategy"):
        KeyspaceOptions(strategy="none")  # type: ignore[arg-type]


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


def test_a_checkpoint_is_a_database_of_its_own(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    with opened(tmp_path / "database") as engine:
        put(engine, a="1")
        engine.checkpoint(copy)
        put(engine, a="2")
    with opened(copy) as engine:
        assert engine.get("left", b"a") == b"1"
