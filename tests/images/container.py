"""Containers without an engine: bubblewrap starts an image's program in namespaces of its own.

The program is process 1, has the image's user and no capabilities, and sees the image's files
read-only. The network is that of the tests.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.images.unpacked import UnpackedImage

STOP_TIMEOUT_S = 90.0
HOST_NAME = "container"


@dataclass
class Container:
    """A container of one image. Each start begins with the same writable directories."""

    image: UnpackedImage
    #: A folder for /tmp, and for the output.
    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    #: Writable folders by their paths in the container.
    volumes: Mapping[str, Path] = field(default_factory=dict)
    #: Addresses of other hosts by their names.
    hosts: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._pid = 0
        user, _, _ = self.image.user.partition(":")
        for folder in (self.folder, self.folder / "tmp", *self.volumes.values()):
            folder.mkdir(parents=True, exist_ok=True)
            os.chown(folder, int(user), int(user))
        # An engine writes this file, too.
        hosts = {"localhost": "127.0.0.1", HOST_NAME: "127.0.0.1", **self.hosts}
        lines = (f"{address} {name}\n" for name, address in hosts.items())
        (self.folder / "hosts").write_text("".join(lines))

    @property
    def output(self) -> str:
        return (self.folder / "output").read_text(errors="replace")

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self, command: Sequence[str] = ()) -> None:
        """Start the image's command, or another one."""
        read, write = os.pipe()
        argv = [*self.image.entrypoint, *(command or self.image.command)]
        with (self.folder / "output").open("ab") as output:
            self._process = subprocess.Popen(
                [*self._namespaces(), "--as-pid-1", "--info-fd", str(write), "--", *argv],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=(write,),
                **self._account(),
            )
        os.close(write)
        with os.fdopen(read) as report:
            self._pid = json.load(report)["child-pid"]

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a program to its end next to what runs already, as a health check does."""
        return subprocess.run(
            [*self._namespaces(), "--", *command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=STOP_TIMEOUT_S,
            check=False,
            **self._account(),
        )

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Ask the program to stop, as an engine does; return its exit status."""
        assert self._process is not None
        if self.is_running:
            os.kill(self._pid, number)
        return self._process.wait(STOP_TIMEOUT_S)

    def wait(self, timeout_s: float) -> int:
        assert self._process is not None
        return self._process.wait(timeout_s)

    def close(self) -> None:
        if self._process is not None and self.is_running:
            self._process.kill()
            self._process.wait()

    def _account(self) -> dict[str, Any]:
        user, _, group = self.image.user.partition(":")
        return {"user": int(user), "group": int(group), "extra_groups": []}

    def _namespaces(self) -> list[str]:
        user, _, group = self.image.user.partition(":")
        argv = ["bwrap", "--unshare-user", "--unshare-pid", "--unshare-ipc"]
        argv += ["--unshare-uts", "--hostname", HOST_NAME]
        argv += ["--uid", user, "--gid", group, "--die-with-parent", "--new-session"]
        argv += ["--ro-bind", str(self.image.root), "/", "--proc", "/proc", "--dev", "/dev"]
        argv += ["--bind", str(self.folder / "tmp"), "/tmp"]
        for path, folder in self.volumes.items():
            argv += ["--bind", str(folder), path]
        argv += ["--ro-bind", str(self.folder / "hosts"), "/etc/hosts"]
        argv += ["--clearenv", "--chdir", self.image.directory]
        for name, value in {**self.image.environment, **self.environment}.items():
            argv += ["--setenv", name, value]
        return argv
