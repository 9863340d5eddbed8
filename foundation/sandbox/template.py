"""The process that loads a decoder once and forks a worker for each job.

It runs with an empty environment, reads nothing that comes from outside, and has one thread of
Python. It ends when its parent does: the control socket closes. Messages on the control socket are
JSON, one to a packet:

    parent  {"fork": JOB, "limits": {…}} with the job's socket   {"kill": JOB}
    template  {"ready": true}   {"ended": JOB, "status": STATUS OF waitpid, or null: no fork}
"""

from __future__ import annotations

import errno
import gc
import importlib
import json
import os
import selectors
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from foundation.json_types import JsonObject
from foundation.sandbox import confinement, messages, system_calls
from foundation.sandbox.limits import JobLimits, impose

Decoder = Callable[[JsonObject, Sequence[int]], JsonObject]

PACKET_BYTES = 4096
#: The descriptors that a worker has beside the files of its request: 0 to 2 and its socket.
_OWN_FILES = 4
_JOB_SOCKET = 3
_FAILED = 70
_MAX_FAILURE_CHARS = 500


@dataclass(slots=True)
class _Template:
    """The template's state: which process works on which job."""

    decoder: Decoder
    control: socket.socket
    jobs: dict[int, int]

    def serve(self) -> None:
        """Fork, kill and report until the parent hangs up."""
        wakeup, signalled = socket.socketpair()
        for side in (wakeup, signalled):
            side.setblocking(False)
        signal.set_wakeup_fd(signalled.fileno())
        signal.signal(signal.SIGCHLD, lambda *_: None)
        with selectors.DefaultSelector() as selector:
            selector.register(self.control, selectors.EVENT_READ)
            selector.register(wakeup, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    if key.fileobj is wakeup:
                        wakeup.recv(PACKET_BYTES)
                        self._reap()
                    elif not self._obey():
                        return

    def _obey(self) -> bool:
        """Execute one command of the parent; return whether the parent still runs."""
        packet, files, _, _ = socket.recv_fds(self.control, PACKET_BYTES, 1)
        if not packet:
            return False
        message = json.loads(packet)
        if "kill" in message:
            for pid, job in self.jobs.items():
                if job == message["kill"]:
                    os.kill(pid, signal.SIGKILL)
        else:
            self._fork(message["fork"], JobLimits(**message["limits"]), files[0])
        return True

    def _fork(self, job: int, limits: JobLimits, job_socket: int) -> None:
        template = os.getpid()
        try:
            pid = os.fork()
        except OSError:
            self._report(job, None)
        else:
            if pid == 0:
                _work(self.decoder, limits, job_socket, template)
            self.jobs[pid] = job
        os.close(job_socket)

    def _reap(self) -> None:
        while self.jobs:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            self._report(self.jobs.pop(pid), status)

    def _report(self, job: int, status: int | None) -> None:
        self.control.send(json.dumps({"ended": job, "status": status}).encode())


def _work(decoder: Decoder, limits: JobLimits, job_socket: int, template: int) -> None:
    """Do one job in a process that has just been forked, and end it."""
    try:
        _shed(job_socket)
        connection = socket.socket(fileno=_JOB_SOCKET)
        confinement.confine(template)
        impose(limits, _OWN_FILES + messages.MAX_FILES)
        system_calls.restrict()
        request, files = messages.receive_request(connection)
        messages.send_reply(connection, _reply(decoder, request, files))
        os._exit(0)
    finally:  # whatever is raised, no code of the template may run in this process
        os._exit(_FAILED)


def _reply(decoder: Decoder, request: JsonObject, files: Sequence[int]) -> JsonObject:
    try:
        return {"result": decoder(request, files)}
    except MemoryError:
        return {"out_of_memory": True}
    except OSError as error:
        # Mapping files needs address space, so this precedes the limits.
        return {"out_of_memory": True} if error.errno == errno.ENOMEM else _failure(error)
    except Exception as error:  # noqa: BLE001 -- the parent logs it; this process has no log
        return _failure(error)


def _failure(failed: Exception) -> JsonObject:
    return {"failed": repr(failed)[:_MAX_FAILURE_CHARS]}


def _shed(job_socket: int) -> None:
    """Drop what was inherited: handlers of signals and all open files but the job's socket."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(nothing, standard)
    if job_socket != _JOB_SOCKET:
        os.dup2(job_socket, _JOB_SOCKET)
    os.closerange(_JOB_SOCKET + 1, os.sysconf("SC_OPEN_MAX"))


def main(control: int, decoder: str) -> None:
    """Load `module:function` and serve on the socket with the number `control`."""
    module, _, name = decoder.partition(":")
    function: Decoder = getattr(importlib.import_module(module), name)
    confinement.hide()
    # The garbage collector ignores frozen objects, so workers keep sharing their pages.
    gc.collect()
    gc.freeze()
    with socket.socket(fileno=control) as connection:
        connection.send(json.dumps({"ready": True}).encode())
        _Template(function, connection, {}).serve()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
