"""A service's log file: raw lines, bounded in size by rotation."""

import errno
from pathlib import Path

FULL_DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT)
MAX_BYTES = 10 * 1024 * 1024
KEPT_FILES = 3


class RotatingLogFile:
    """Appends lines to ``path``; full files become ``path.1``, ``path.2``, …

    A full, read-only or broken disk must not stop the launcher: the line is lost, and ``failure``
    contains the reason.
    """

    def __init__(
        self, path: Path, *, max_bytes: int = MAX_BYTES, kept_files: int = KEPT_FILES
    ) -> None:
        self.path = path
        self.failure = ""
        self._max_bytes = max_bytes
        self._kept_files = kept_files
        self._open()

    def write(self, line: bytes) -> None:
        """Append one line, which has no line end yet."""
        try:
            if self._size + len(line) + 1 > self._max_bytes and self._size:
                self._rotate()
            if self._file.closed:  # the last rotation was interrupted
                self._open()
            self._size += self._file.write(line + b"\n")
            self.failure = ""
        except OSError as error:
            self.failure = error.strerror or str(error)

    def close(self) -> None:
        self._file.close()

    def _rotate(self) -> None:
        self._file.close()
        for number in range(self._kept_files - 1, 0, -1):
            older = self._rotated_path(number)
            if older.exists():
                older.replace(self._rotated_path(number + 1))
        if self.path.exists():
            self.path.replace(self._rotated_path(1))
        self._open()

    def _open(self) -> None:
        self._file = self.path.open("ab", buffering=0)
        self._size = self._file.tell()

    def _rotated_path(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}")
