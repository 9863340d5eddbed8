"""The interface through which the supervisor starts nodes."""

from __future__ import annotations

import secrets
import socket
from typing import Protocol

from realtime.grid.layout import NodeSpec


class NodeHandle(Protocol):
    """A node that was started."""

    @property
    def holder(self) -> str:
        """The unique name under which it holds leases and reports."""

    def ended(self) -> str | None:
        """Return why it ended, for the log; None: it runs."""

    def stop(self) -> None:
        """Ask it to exit. It may have exited already."""

    def kill(self) -> None:
        """Kill it, even if it does not respond."""


class Launcher(Protocol):
    """Starts nodes somewhere. Every method may block, and is called by one thread at a time."""

    def open(self, slots: int) -> int:
        """Prepare to run this many nodes at once; return how many can run, which may be more."""

    def room(self) -> int:
        """Return how many nodes can run now; fewer than slots while machines are missing."""

    def start(self, node: NodeSpec) -> NodeHandle:
        """Start a node, without waiting for it."""

    def lost(self) -> str | None:
        """Return why nothing can be started here any more; None if it can."""

    def close(self) -> None:
        """End everything that was started."""


def new_holder() -> str:
    """Return a unique name for a node."""
    return f"{socket.gethostname()}:{secrets.token_hex(8)}"
