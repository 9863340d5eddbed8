"""Encrypted files: authenticated, streamed, and bound to their names.

A file has a header with a random salt, then chunks of 1 MiB, each encrypted with AES-256-GCM. Its
key is derived from the repository's key, the salt and the file's name, so a file that was renamed
or exchanged cannot be opened. A chunk's nonce contains its number and whether it is the last one,
so chunks can be neither reordered nor cut off.
"""

from __future__ import annotations

import io
import os
import secrets
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

MAGIC = b"RBSEAL1\n"
KEY_BYTES = 32
_SALT_BYTES = 32
_TAG_BYTES = 16
CHUNK_BYTES = 1024 * 1024
#: The fastest level: most of what is not compressed yet is pages of tables.
_COMPRESSION = 1


class SealBrokenError(Exception):
    """A file is damaged, cut off, exchanged or encrypted with another key."""


@contextmanager
def sealed_file(path: Path, name: str, key: bytes) -> Iterator[BinaryIO]:
    """Write an encrypted file, which appears only when it is complete and on disk."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(draft, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            writer = _SealingWriter(file, name, key)
            yield cast("BinaryIO", writer)
            writer.finish()
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    _sync_directory(path.parent)


@contextmanager
def opened_seal(path: Path, name: str, key: bytes) -> Iterator[BinaryIO]:
    """Read an encrypted file. What has been read is authentic; the end is, once it is reached."""
    with path.open("rb") as file:
        yield io.BufferedReader(_SealedReader(file, name, key))


class _SealingWriter(io.RawIOBase):
    """Compresses, divides into chunks and encrypts."""

    def __init__(self, file: BinaryIO, name: str, key: bytes) -> None:
        super().__init__()
        salt = secrets.token_bytes(_SALT_BYTES)
        self._file = file
        self._cipher = _cipher(key, salt, name)
        self._compressor = zlib.compressobj(_COMPRESSION)
        self._waiting = bytearray()
        self._number = 0
        file.write(MAGIC + salt)

    def writable(self) -> bool:
        return True

    def write(self, data: bytes, /) -> int:  # type: ignore[override]
        self._waiting += self._compressor.compress(data)
        # The last chunk must not be written before it is known to be the last.
        while len(self._waiting) > CHUNK_BYTES:
            self._write_chunk(bytes(self._waiting[:CHUNK_BYTES]), is_last=False)
            del self._waiting[:CHUNK_BYTES]
        return len(data)

    def finish(self) -> None:
        self._waiting += self._compressor.flush()
        while len(self._waiting) > CHUNK_BYTES:
            self._write_chunk(bytes(self._waiting[:CHUNK_BYTES]), is_last=False)
            del self._waiting[:CHUNK_BYTES]
        self._write_chunk(bytes(self._waiting), is_last=True)

    def _write_chunk(self, content: bytes, *, is_last: bool) -> None:
        nonce = _nonce(self._number, is_last=is_last)
        self._file.write(self._cipher.encrypt(nonce, content, None))
        self._number += 1


class _SealedReader(io.RawIOBase):
    """Decrypts chunk by chunk."""

    def __init__(self, file: BinaryIO, name: str, key: bytes) -> None:
        super().__init__()
        self._file, self._name = file, name
        header = file.read(len(MAGIC) + _SALT_BYTES)
        if len(header) < len(MAGIC) + _SALT_BYTES or not header.startswith(MAGIC):
            raise SealBrokenError(f"{name} is not an encrypted file of a backup")
        self._cipher = _cipher(key, header[len(MAGIC) :], name)
        self._decompressor = zlib.decompressobj()
        self._next = file.read(CHUNK_BYTES + _TAG_BYTES)
        self._number = 0
        self._plain = b""
        self._is_over = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview, /) -> int:  # type: ignore[override]
        while not self._plain and not self._is_over:
            self._plain = self._read_bytes(len(buffer))
        count = min(len(buffer), len(self._plain))
        buffer[:count] = self._plain[:count]
        self._plain = self._plain[count:]
        return count

    def _read_bytes(self, max_bytes: int) -> bytes:
        """Return at most so many bytes, however well they were compressed."""
        if self._decompressor.unconsumed_tail:
            return self._decompressor.decompress(self._decompressor.unconsumed_tail, max_bytes)
        if not self._next:
            self._is_over = True
            if not self._decompressor.eof:
                raise SealBrokenError(f"{self._name} is cut off")
            return b""
        return self._decompressor.decompress(self._read_chunk(), max_bytes)

    def _read_chunk(self) -> bytes:
        chunk, self._next = self._next, self._file.read(CHUNK_BYTES + _TAG_BYTES)
        nonce = _nonce(self._number, is_last=not self._next)
        self._number += 1
        try:
            return self._cipher.decrypt(nonce, chunk, None)
        except InvalidTag:
            raise SealBrokenError(
                f"{self._name} is damaged, or encrypted with another key"
            ) from None


def _cipher(key: bytes, salt: bytes, name: str) -> AESGCM:
    info = b"rillbase backup\0" + name.encode()
    return AESGCM(HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=salt, info=info).derive(key))


def _nonce(number: int, *, is_last: bool) -> bytes:
    return number.to_bytes(11, "big") + (b"\x01" if is_last else b"\x00")


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
