"""Encrypted files of a backup: only what was written, under its own name, with its own key."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import pytest

from rillbase_server.backup.sealing import (
    CHUNK_BYTES,
    MAGIC,
    SealBrokenError,
    opened_seal,
    sealed_file,
)

KEY = bytes(range(32))
SIZES = (0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES + 17)


def write(path: Path, content: bytes, name: str = "base", key: bytes = KEY) -> None:
    with sealed_file(path, name, key) as file:
        for start in range(0, len(content), 100_000):
            file.write(content[start : start + 100_000])


def read(path: Path, name: str = "base", key: bytes = KEY) -> bytes:
    with opened_seal(path, name, key) as file:
        return file.read()


@pytest.mark.parametrize("size", SIZES)
def test_what_was_written_is_read(tmp_path: Path, size: int) -> None:
    content = os.urandom(size)
    write(tmp_path / "base", content)
    assert read(tmp_path / "base") == content


def test_the_content_is_not_visible(tmp_path: Path) -> None:
    write(tmp_path / "base", b"a secret " * 1000)
    stored = (tmp_path / "base").read_bytes()
    assert b"secret" not in stored
    assert (tmp_path / "base").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("size", SIZES)
def test_a_changed_byte_is_detected(tmp_path: Path, size: int) -> None:
    path = tmp_path / "base"
    write(path, os.urandom(size))
    intact = path.read_bytes()
    for position in {0, len(MAGIC), len(intact) // 2, len(intact) - 1}:
        damaged = bytearray(intact)
        damaged[position] ^= 1
        path.write_bytes(damaged)
        with pytest.raises(SealBrokenError):
            read(path)


def test_a_file_that_is_cut_off_is_detected_at_every_length(tmp_path: Path) -> None:
    path = tmp_path / "base"
    write(path, os.urandom(2 * CHUNK_BYTES + 5))
    intact = path.read_bytes()
    header = len(MAGIC) + 32
    sealed_chunk = CHUNK_BYTES + 16
    for length in (0, 5, header, header + 7, header + sealed_chunk, header + 2 * sealed_chunk):
        path.write_bytes(intact[:length])
        with pytest.raises(SealBrokenError):
            read(path)


def test_exchanged_chunks_are_detected(tmp_path: Path) -> None:
    path = tmp_path / "base"
    write(path, os.urandom(3 * CHUNK_BYTES))
    intact = path.read_bytes()
    header, sealed_chunk = len(MAGIC) + 32, CHUNK_BYTES + 16
    first = intact[header : header + sealed_chunk]
    second = intact[header + sealed_chunk : header + 2 * sealed_chunk]
    path.write_bytes(intact[:header] + second + first + intact[header + 2 * sealed_chunk :])
    with pytest.raises(SealBrokenError):
        read(path)


def test_a_file_cannot_be_read_under_another_name_or_with_another_key(tmp_path: Path) -> None:
    write(tmp_path / "base", b"content")
    with pytest.raises(SealBrokenError, match="another key"):
        read(tmp_path / "base", name="node")
    with pytest.raises(SealBrokenError, match="another key"):
        read(tmp_path / "base", key=bytes(32))


def test_nothing_appears_if_writing_fails(tmp_path: Path) -> None:
    def write_until_the_disk_is_full() -> None:
        with sealed_file(tmp_path / "base", "base", KEY) as file:
            file.write(b"content")
            raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        write_until_the_disk_is_full()
    assert list(tmp_path.iterdir()) == []


def test_memory_stays_small_however_well_the_content_was_compressed(tmp_path: Path) -> None:
    piece = bytes(CHUNK_BYTES)
    with sealed_file(tmp_path / "base", "base", KEY) as file:
        for _ in range(200):
            file.write(piece)
    tracemalloc.start()
    with opened_seal(tmp_path / "base", "base", KEY) as file:
        size = 0
        while content := file.read(CHUNK_BYTES):
            size += len(content)
        _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size == 200 * CHUNK_BYTES
    assert peak_bytes < 10 * CHUNK_BYTES
