"""The parent's side of a template process."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from foundation.sandbox import messages
from foundation.sandbox.landlock import JobFolders
from foundation.sandbox.limits import JobLimits
from foundation.sandbox.template import PACKET_BYTES

T = TypeVar("T")

START_DEADLINE_S = 60.0
_ROOT = str(Path(__file__).resolve().parents[2])
_MAIN = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from foundation.sandbox.template import main; main(int(sys.argv[2]), sys.argv[3])"
)
#: The whole environment of a worker. One arena and few threads keep its address space, which is
#: bounded, close to the memory that it needs.
_ENVIRONMENT = {
    "LC_ALL": "C.UTF-8",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "2",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


class TemplateFailed(Exception):
    """The template process did not start, or ended."""


@dataclass(frozen=True, slots=True)
class SandboxWorker:
    """A forked worker: its job, its exit status in the future, and the socket to it."""

    job: int
    ended: asyncio.Future[int]
    connection: socket.socket

    def assign(self, limits: JobLimits, folders: JobFolders) -> None:
        """Give a prepared worker its job. Raise `TemplateFailed` if it has ended."""
        head, body = messages.encode({"limits": asdict(limits)})
        try:
            messages.send_head(self.connection, head, (folders.readable, folders.writable))
            self.connection.sendall(body)
        except OSError as error:
            self.connection.close()
            raise TemplateFailed from error


class Template:
    """Forks workers and reports how they ended."""

    def __init__(self, process: subprocess.Popen[bytes], control: socket.socket) -> None:
        self._process = process
        self._control = control
        self._loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[None] = self._loop.create_future()
        self._jobs: dict[int, asyncio.Future[int]] = {}
        self._names = count(1)
        self.is_alive = True
        self._loop.add_reader(control.fileno(), self._receive)

    @classmethod
    async def start(cls, decoder: str) -> Template:
        """Start a template for the decoder `module:function`, and wait until it can fork."""
        parent_socket, child_socket = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        parent_socket.setblocking(False)
        with child_socket:
            process = await asyncio.to_thread(_spawn, decoder, child_socket)
        template = cls(process, parent_socket)
        try:
            async with asyncio.timeout(START_DEADLINE_S):
                await template._ready
        except BaseException as error:
            await template.aclose()
            if isinstance(error, TimeoutError):
                raise TemplateFailed from error
            raise
        return template

    def fork(self, limits: JobLimits) -> SandboxWorker:
        """Fork a worker for one request."""
        return self._begin({"fork": next(self._names), "limits": asdict(limits)}, "fork")

    def prepare(self) -> SandboxWorker:
        """Fork a worker that waits for a job (`assign`)."""
        return self._begin({"prepare": next(self._names)}, "prepare")

    def _begin(self, message: dict[str, Any], command: str) -> SandboxWorker:
        if not self.is_alive:
            raise TemplateFailed
        job = int(message[command])
        parent_socket, child_socket = socket.socketpair()
        parent_socket.setblocking(False)
        text = json.dumps(message).encode()
        try:
            with child_socket:
                socket.send_fds(self._control, [text], [child_socket.fileno()])
        except OSError as error:
            parent_socket.close()
            raise TemplateFailed from error
        result = self._jobs[job] = self._loop.create_future()
        return SandboxWorker(job, result, parent_socket)

    def kill(self, job: int) -> None:
        """End a job's worker, if it has not ended yet."""
        if self.is_alive and job in self._jobs:
            self._control.send(json.dumps({"kill": job}).encode())

    async def aclose(self) -> None:
        """End the template and all its workers."""
        self._lose()
        self._process.kill()
        await asyncio.to_thread(self._process.wait)

    def _receive(self) -> None:
        """Read all packets: uvloop reports only once that the other end was closed by a kill."""
        while self.is_alive:
            try:
                packet = self._control.recv(PACKET_BYTES)
            except BlockingIOError:
                return
            except OSError:
                packet = b""
            if packet:
                self._handle(packet)
            else:
                self._lose()

    def _handle(self, packet: bytes) -> None:
        message = json.loads(packet)
        if "ready" in message:
            self._ready.set_result(None)
            return
        result = self._jobs.pop(message["ended"])
        if result.done():
            return
        if message["status"] is None:
            result.set_exception(TemplateFailed("no process could be forked"))
        else:
            result.set_result(message["status"])

    def _lose(self) -> None:
        """Forget a template that has ended, or is about to."""
        if not self.is_alive:
            return
        self.is_alive = False
        self._loop.remove_reader(self._control.fileno())
        self._control.close()
        failed = TemplateFailed("the template process ended")
        _fail(self._ready, failed)
        for ended in self._jobs.values():
            _fail(ended, failed)
        self._jobs.clear()


def _fail(waiting: asyncio.Future[T], failed: TemplateFailed) -> None:
    if not waiting.done():
        waiting.set_exception(failed)
        waiting.exception()  # mark it as retrieved, because there may be no waiter


def _spawn(decoder: str, control: socket.socket) -> subprocess.Popen[bytes]:
    number = control.fileno()
    return subprocess.Popen(
        [sys.executable, "-I", "-X", "utf8", "-c", _MAIN, _ROOT, str(number), decoder],
        env=_ENVIRONMENT,
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        pass_fds=[number],
        start_new_session=True,
    )
