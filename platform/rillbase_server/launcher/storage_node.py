"""The storage node: its command line, environment and URLs."""

import sys
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psutil

from .account import Account, private_directory
from .ports import LOOPBACK

# Errors of a node whose predecessor still holds the port or the data.
TRANSIENT_FAILURES = ("Address already in use", "is locked")


def binary() -> Path:
    """Return the path of the program, which is installed next to Python."""
    return Path(sys.executable).parent / "rillbase-node"


def listening_on(process: psutil.Process) -> str:
    """Return the address that a running node was started with."""
    argv = process.cmdline()
    return argv[argv.index("--listen") + 1]


@dataclass(frozen=True)
class StorageNodeProgram:
    """One node's directory: everything except the running process."""

    directory: Path
    token: str
    port: int
    metrics_port: int
    account: Account | None = None

    @property
    def url(self) -> str:
        """The administrator's connection URL."""
        return f"redis://admin:{quote(self.token, safe='')}@{LOOPBACK}:{self.port}"

    @property
    def health_url(self) -> str:
        """The URL of its readiness and metrics."""
        return f"http://{LOOPBACK}:{self.metrics_port}"

    @property
    def environment(self) -> dict[str, str]:
        """Variables for the node only. (Every user of the machine can read arguments.)"""
        return {"RILLBASE_NODE_TOKEN": self.token}

    def argv(self) -> list[str]:
        """The command that runs the node in the foreground."""
        listen = ["--listen", f"{LOOPBACK}:{self.port}"]
        metrics = ["--metrics", f"{LOOPBACK}:{self.metrics_port}"]
        return [str(binary()), "--directory", str(self.directory), *listen, *metrics]

    def before_start(self) -> None:
        """Create the directory, private to the node's account."""
        private_directory(self.directory, self.account)
