"""Workers of SQL whose allow-list has failed: they execute any statement, or attackers' code."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path

import duckdb

from analytics.sql import worker
from analytics.sql.syntax import StatementNeeds
from foundation.json_types import JsonObject
from foundation.sandbox import messages
from foundation.sandbox.template import WRITABLE

warm_up = worker.warm_up
_libc = ctypes.CDLL(None, use_errno=True)


def execute(connection: socket.socket) -> None:
    """Do what a worker does, but without looking at the statement.

    If it is unlocked, DuckDB's settings have failed too.
    """
    request, _ = messages.receive_request(connection)
    if "attack" in request:
        messages.send_reply(connection, _attacks(request))
        return
    replaced: dict[str, object] = {
        "_needs": lambda _, named: StatementNeeds(frozenset(named), None),
        "messages": _Replay(request),
    }
    if request.get("unlocked"):
        replaced |= dict.fromkeys(("allow_files", "lock"), lambda *_: None)
    for name, value in replaced.items():
        setattr(worker, name, value)
    worker.execute(connection)


class _Replay:
    """The messages of a worker, the first of which has been received already."""

    def __init__(self, first: JsonObject) -> None:
        self._first: JsonObject | None = first

    def receive_request(self, connection: socket.socket) -> tuple[JsonObject, list[int]]:
        first, self._first = self._first, None
        return (first, []) if first is not None else messages.receive_request(connection)

    send_reply = staticmethod(messages.send_reply)


def _attacks(request: JsonObject) -> JsonObject:
    """Return which attacks succeed."""
    other, inside = str(request["other"]), str(request["inside"])
    attempts: dict[str, Callable[[], object]] = {
        "reads another dataset": lambda: Path(other).read_bytes(),
        "reads it from its own folder": lambda: Path("..", Path(other).name).read_bytes(),
        "lists its own folder": lambda: os.listdir("."),
        "reads accounts": lambda: Path("/etc/passwd").read_text(),
        "reads the server's environment": lambda: Path(f"/proc/{os.getppid()}/environ").read_text(),
        "reads its own memory": lambda: Path("/proc/self/mem").open("rb"),
        "writes a file of the dataset": lambda: os.open(inside, os.O_WRONLY),
        "truncates a file of the dataset": lambda: os.open(inside, os.O_RDONLY | os.O_TRUNC),
        "truncates it by name": lambda: os.truncate(inside, 0),
        "removes a file of the dataset": lambda: os.unlink(inside),
        "creates a file in the dataset": lambda: os.open("new", os.O_CREAT | os.O_WRONLY, 0o600),
        "renames a file of the dataset": lambda: os.rename(inside, "moved"),
        "links a file of the dataset": lambda: os.link(inside, f"/proc/self/fd/{WRITABLE}/x"),
        "makes a symbolic link": lambda: os.symlink("/", f"/proc/self/fd/{WRITABLE}/y"),
        "makes a folder": lambda: os.mkdir(f"/proc/self/fd/{WRITABLE}/z"),
        "changes the mode of a file": lambda: os.chmod(inside, 0o777),
        "creates a file in /tmp": lambda: os.open("/tmp/escaped", os.O_CREAT | os.O_WRONLY, 0o600),
        "connects": lambda: socket.create_connection(("127.0.0.1", 1)),
        "makes a socket": lambda: socket.socket(socket.AF_UNIX),
        "makes a datagram socket": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
        "starts a program": lambda: os.execv("/bin/true", ["true"]),
        "forks": _fork,
        "signals the server": lambda: os.kill(os.getppid(), 0),
        "signals everybody": lambda: os.kill(-1, signal.SIGCONT),
        "becomes root": lambda: os.setuid(0),
        "traces": lambda: _call("ptrace", 16, os.getppid(), 0, 0),
        "reads memory of others": lambda: _call("process_vm_readv", os.getppid(), 0, 0, 0, 0, 0),
        "makes a namespace": lambda: _call("unshare", 0x10000000),
        "mounts": lambda: _call("mount", b"/", b"/", 0, 0x1000, 0),
        "changes its root": lambda: os.chroot("."),
        "opens by handle": lambda: _call("open_by_handle_at", 4, 0, 0),
        "raises its limits": _raise_limits,
        "lifts its restrictions": lambda: _call("prctl", 38, 0, 0, 0, 0),
        "sees more of the machine": lambda: os.listdir("/"),
        "sees other processes": lambda: os.listdir("/proc"),
    }
    succeeded = [name for name, attempt in attempts.items() if _succeeds(attempt)]
    here = Path(f"/proc/self/fd/{WRITABLE}/own")
    here.write_text("its own")
    read = Path(inside).read_bytes()
    return {
        "succeeded": [*succeeded],
        "user": os.getuid(),
        "own": here.read_text(),
        "read": len(read),
    }


def _succeeds(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except (OSError, ValueError, duckdb.Error):
        return False
    return True


def _fork() -> None:
    if os.fork() == 0:
        os._exit(0)


def _raise_limits() -> None:
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (hard * 2, hard * 2))


def _call(name: str, *arguments: int | bytes) -> None:
    values = [ctypes.c_long(a) if isinstance(a, int) else ctypes.c_char_p(a) for a in arguments]
    if getattr(_libc, name)(*values) < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
