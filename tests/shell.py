"""A shell into which code blocks of the documentation are pasted."""

from __future__ import annotations

import os
import selectors
import subprocess
import time
from pathlib import Path

DONE = "-- block done --"
#: The grid may still be starting when a live query begins.
ANSWER_TIMEOUT_S = 120.0


class Shell:
    """An interactive shell into which blocks are pasted."""

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
        # Makes each job a process group, so that processes started by a job end with it. Set here
        # and not as bash's option, which has no effect if the shell has no terminal.
        self.paste("set -m")

    def paste(self, block: str) -> str:
        """Run a block to its end and return its output."""
        assert self._shell.stdin is not None
        begin = len(self.transcript)
        self._shell.stdin.write(f"{block}\necho '{DONE}'\n".encode())
        self.wait_for(DONE, begin)
        return self.transcript[begin:]

    def wait_for(self, text: str, begin: int = 0) -> None:
        """Wait until the shell, or a program that it has started, has printed `text`."""
        assert self._shell.stdout is not None
        deadline = time.monotonic() + ANSWER_TIMEOUT_S
        with selectors.DefaultSelector() as selector:
            selector.register(self._shell.stdout, selectors.EVENT_READ)
            while text not in self.transcript[begin:]:
                assert time.monotonic() < deadline, f"no {text!r} in {self.transcript[begin:]!r}"
                if selector.select(timeout=0.1):
                    self.transcript += self._shell.stdout.read(65536).decode()

    def close(self) -> None:
        """Close the shell, after ending the jobs that a failed test has left running."""
        ending = b"for job in $(jobs -p); do kill -- -$job; done\n"
        self._shell.communicate(ending, timeout=ANSWER_TIMEOUT_S)
