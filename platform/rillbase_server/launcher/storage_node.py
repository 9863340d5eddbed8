"""The storage node: how it is started, and the URL under which it is known."""

import sys
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from .account import Account, private_directory
from .ports import LOOPBACK

# Said by a node that finds its predecessor still holding the port, or the data.
TRANSIENT_FAILURES = ("Address already in use", "is locked")


def binary() -> Path:
    """The path of the program, which is installed beside Python's."""
    return Path(sys.executable).parent / "rillbase-node"


@dataclass(frozen=True)
class StorageNodeProgram:
    """One node's directory: everything about it but the running process."""

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
        """Where it says whether it is ready, and what it counts."""
        return f"http://{LOOPBACK}:{self.metrics_port}"

    @property
    def environment(self) -> dict[str, str]:
        """Variables for the node only; arguments can be read by every user of the machine."""
        return {"RILLBASE_NODE_TOKEN": self.token}

    def argv(self) -> list[str]:
        """The command that runs the node in the foreground."""
        listen = ["--listen", f"{LOOPBACK}:{self.port}"]
        metrics = ["--metrics", f"{LOOPBACK}:{self.metrics_port}"]
        return [str(binary()), "--directory", str(self.directory), *listen, *metrics]

    def before_start(self) -> None:
        """Make the directory, for the node's account alone."""
        private_directory(self.directory, self.account)
