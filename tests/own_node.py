"""A storage node for the whole run, or for a test that kills and restarts it."""

from __future__ import annotations

import secrets
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.own_process import OwnProcess
from tests.own_storage_node import BINARY


class OwnNode(OwnProcess):
    """The data on disk survives a stop. The node's log is discarded."""

    errors = subprocess.DEVNULL

    def __init__(self, folder: Path, port: int | None = None, token: str | None = None) -> None:
        self._token = token or secrets.token_hex(16)
        super().__init__(folder, port)

    @property
    def url(self) -> str:
        return f"redis://admin:{self._token}@127.0.0.1:{self.port}"

    def forget(self) -> None:
        """Delete all data. The process has been killed."""
        shutil.rmtree(self._folder)

    def _command(self) -> Sequence[str]:
        listen = f"127.0.0.1:{self.port}"
        return [str(BINARY), "--directory", str(self._folder), "--listen", listen]

    def _variables(self) -> Mapping[str, str]:
        return {"RILLBASE_NODE_TOKEN": self._token}
