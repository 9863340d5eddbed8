"""A shell into which blocks of the documentation are pasted."""

from __future__ import annotations

import os
import selectors
import subprocess
import time
from pathlib import Path

DONE = "-- block done --"
#: The grid may still be starting when somebody begins to watch.
ANSWER_TIMEOUT_S = 120.0


class Shell:
    """A shell as somebody has it open, into which blocks are pasted."""

    def __init__(self, folder: Path | None = None, **variables: str) -> None:
        self._shell = subprocess.Popen(
            ["bash"],
            cwd=folder,
            env={**os.environ, **variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            bufsize=0,
        )
        self.transcript = ""
        # Jobs are process groups then, so that what a job has started ends with it. Said here and
        # not as bash's option, which is void where the shell has no terminal.
        self.paste("set -m")

    def paste(self, block: str) -> str:
        """Run a block to its end and return what was printed meanwhile."""
        assert self._shell.stdin is not None
        begin = len(self.transcript)
        self._shell.stdin.write(f"{block}\necho '{DONE}'\n".encode())
        self.wait_for(DONE, begin)
        return self.transcript[begin:]

    def wait_for(self, text: str, begin: int = 0) -> None:
        """Return once `text` has been printed, by the shell or by what it has started."""
        assert self._shell.stdout is not None
        deadline = time.monotonic() + ANSWER_TIMEOUT_S
        with selectors.DefaultSelector() as selector:
            selector.register(self._shell.stdout, selectors.EVENT_READ)
            while text not in self.transcript[begin:]:
                assert time.monotonic() < deadline, f"no {text!r} in {self.transcript[begin:]!r}"
                if selector.select(timeout=0.1):
                    self.transcript += self._shell.stdout.read(65536).decode()

    def close(self) -> None:
        """Leave the shell; what a failed test left running in it ends first."""
        ending = b"for job in $(jobs -p); do kill -- -$job; done\n"
        self._shell.communicate(ending, timeout=ANSWER_TIMEOUT_S)
