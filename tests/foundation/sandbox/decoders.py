"""Decoders that behave as real ones do when they meet hostile input. Run in workers only."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from foundation.json_types import JsonObject


def decode(request: JsonObject, files: Sequence[int]) -> JsonObject:
    """Behave as the request says."""
    return _ACTIONS[str(request["do"])](request, files)


def _echo(request: JsonObject, files: Sequence[int]) -> JsonObject:
    return {"echo": request["text"], "pid": os.getpid()}


def _wait(request: JsonObject, files: Sequence[int]) -> JsonObject:
    """Report that it runs, and continue once the other end of the file closes."""
    os.write(files[0], b"r")
    os.read(files[0], 1)
    return {}


def _spin(request: JsonObject, files: Sequence[int]) -> JsonObject:
    while True:
        pass


def _allocate(request: JsonObject, files: Sequence[int]) -> JsonObject:
    return {"bytes": len(bytearray(cast("int", request["bytes"])))}


def _crash(request: JsonObject, files: Sequence[int]) -> JsonObject:
    signal.signal(signal.SIGSEGV, signal.SIG_DFL)
    signal.raise_signal(signal.SIGSEGV)
    return {}


def _raise(request: JsonObject, files: Sequence[int]) -> JsonObject:
    raise ValueError("no decoder expects this")


def _surroundings(request: JsonObject, files: Sequence[int]) -> JsonObject:
    """Report what a worker can see and access. Its file has the maximum size."""
    os.write(files[0], b"x" * cast("int", request["file_bytes"]))
    return {
        "environment": " ".join(os.environ),
        "opens": _attempt(lambda: Path("/etc/passwd").read_text()),
        "connects": _attempt(lambda: socket.socket().close()),
        "executes": _attempt(lambda: os.execv("/bin/true", ["true"])),
        "forks": _attempt(_fork),
        "kills": _attempt(lambda: os.kill(os.getppid(), 0)),
        "grows": _attempt(lambda: os.write(files[0], b"x")),
    }


def _fork() -> None:
    if os.fork() == 0:
        os._exit(0)


def _attempt(action: object) -> bool:
    try:
        action()  # type: ignore[operator]
    except OSError:
        return False
    return True


_ACTIONS = {
    "echo": _echo,
    "wait": _wait,
    "spin": _spin,
    "allocate": _allocate,
    "crash": _crash,
    "raise": _raise,
    "surroundings": _surroundings,
}
