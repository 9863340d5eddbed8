"""The process that loads a decoder once and forks a worker for each job.

Workers of sessions are forked before there is a job. They wait on their socket for the limits and
folders of one, and drop their privileges before they read anything that comes from outside.

The template runs with an empty environment, reads nothing that comes from outside, and has one
thread of Python. It ends when its parent does: the control socket closes. Messages on the control
socket are JSON, one to a packet:

    parent  {"fork": JOB, "limits": {…}} with the job's socket   {"kill": JOB}
            {"prepare": JOB} with the job's socket
    template  {"ready": true}   {"ended": JOB, "status": STATUS OF waitpid, or null: no fork}
"""

from __future__ import annotations

import errno
import fcntl
import gc
import importlib
import json
import os
import selectors
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

from foundation.json_types import JsonObject
from foundation.sandbox import confinement, landlock, messages, system_calls
from foundation.sandbox.landlock import JobFolders
from foundation.sandbox.limits import JobLimits, impose

#: Does a job that consists of one request and one reply.
Decoder = Callable[[JsonObject, Sequence[int]], JsonObject]
#: Does a job that has folders: it talks with the server over its socket as long as it likes.
SessionWork = Callable[[socket.socket], None]

PACKET_BYTES = 4096
#: The descriptors of a worker. It is in its readable folder.
_JOB_SOCKET, _READABLE, WRITABLE = 3, 4, 5
_ABOVE = 16
#: Requests take precedence over warming up, and that over jobs.
_WARM_UP_NICENESS = 10
_FAILED = 70
_THREADS = Path("/proc/self/task")
_MAX_FAILURE_CHARS = 2_000


@dataclass(slots=True)
class _Template:
    """The template's state: which process works on which job."""

    work: Decoder | SessionWork
    #: Does in a prepared worker what any job would have to do first. Starts no threads.
    warm_up: Callable[[], None]
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
                    elif not self._execute_command():
                        return

    def _execute_command(self) -> bool:
        """Execute one command of the parent; return whether the parent still runs."""
        packet, files, _, _ = socket.recv_fds(self.control, PACKET_BYTES, 1)
        if not packet:
            return False
        message = json.loads(packet)
        if "kill" in message:
            for pid, job in self.jobs.items():
                if job == message["kill"]:
                    os.kill(pid, signal.SIGKILL)
        elif "prepare" in message:
            work, warm_up = cast("SessionWork", self.work), self.warm_up
            self._fork(message["prepare"], files, partial(_hold_session, work, warm_up))
        else:
            limits = JobLimits(**message["limits"])
            do_job = partial(_decode, cast("Decoder", self.work), limits)
            self._fork(message["fork"], files, do_job)
        return True

    def _fork(
        self, job: int, files: Sequence[int], do_job: Callable[[socket.socket, int], None]
    ) -> None:
        template = os.getpid()
        try:
            pid = os.fork()
        except OSError:
            self._report(job, None)
        else:
            if pid == 0:
                _work(do_job, files, template)
            self.jobs[pid] = job
        for file in files:
            os.close(file)

    def _reap(self) -> None:
        while self.jobs:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            self._report(self.jobs.pop(pid), status)

    def _report(self, job: int, status: int | None) -> None:
        self.control.send(json.dumps({"ended": job, "status": status}).encode())


def _work(
    do_job: Callable[[socket.socket, int], None], files: Sequence[int], template: int
) -> None:
    """Do one job in a process that has just been forked, and end it."""
    try:
        _shed(files)
        do_job(socket.socket(fileno=_JOB_SOCKET), template)
        os._exit(0)
    finally:  # whatever is raised, no code of the template may run in this process
        os._exit(_FAILED)


def _decode(decoder: Decoder, limits: JobLimits, connection: socket.socket, template: int) -> None:
    _drop_privileges(limits, None, template)
    request, opened = messages.receive_request(connection)
    messages.send_reply(connection, _reply(decoder, request, opened))


def _hold_session(
    work: SessionWork, warm_up: Callable[[], None], connection: socket.socket, template: int
) -> None:
    """Wait for a job, and do it."""
    os.nice(_WARM_UP_NICENESS)
    warm_up()
    try:
        assignment, folders = messages.receive_request(connection)
    except (EOFError, ConnectionError):  # there will be none
        return
    for number, folder in zip((_READABLE, WRITABLE), folders, strict=True):
        if folder != number:
            os.dup2(folder, number)
            os.close(folder)
    limits = JobLimits(**cast("dict[str, Any]", assignment["limits"]))
    _drop_privileges(limits, JobFolders(_READABLE, WRITABLE), template)
    _converse(work, connection)


def _drop_privileges(limits: JobLimits, folders: JobFolders | None, template: int) -> None:
    """Confine this process to its job. All that it reads from now on may be hostile."""
    if len([*_THREADS.iterdir()]) > 1:
        # Landlock and the filter of system calls restrict the calling thread, and those it starts.
        raise RuntimeError("a worker had several threads before it was confined")
    confinement.become_user(folders)
    confinement.confine(template)
    impose(limits)
    if folders is not None:
        os.fchdir(folders.readable)
    landlock.restrict(folders)
    system_calls.restrict(with_folders=folders is not None)


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


def _converse(work: SessionWork, connection: socket.socket) -> None:
    try:
        work(connection)
    except (EOFError, ConnectionError):  # the session was closed
        return
    except Exception as error:  # noqa: BLE001 -- as above
        messages.send_reply(connection, _failure(error))


def _failure(failed: Exception) -> JsonObject:
    text = "".join(traceback.format_exception(failed))
    return {"failed": text[-_MAX_FAILURE_CHARS:]}


def _shed(files: Sequence[int]) -> None:
    """Drop inherited resources: signal handlers and all open files but the job's."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDWR)
    # Their numbers may be among those that are taken next.
    kept = [fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, _ABOVE) for file in files]
    for standard in range(3):
        os.dup2(nothing, standard)
    for number, file in enumerate(kept, start=_JOB_SOCKET):
        os.dup2(file, number)
    os.closerange(_JOB_SOCKET + len(kept), os.sysconf("SC_OPEN_MAX"))


def main(control: int, decoder: str) -> None:
    """Load `module:function` and serve on the socket with the number `control`.

    If the module has a function `warm_up`, prepared workers call it.
    """
    module, _, name = decoder.partition(":")
    loaded = importlib.import_module(module)
    function: Decoder | SessionWork = getattr(loaded, name)
    warm_up: Callable[[], None] = getattr(loaded, "warm_up", lambda: None)
    confinement.hide()
    # The garbage collector ignores frozen objects, so workers keep sharing their pages.
    gc.collect()
    gc.freeze()
    with socket.socket(fileno=control) as connection:
        connection.send(json.dumps({"ready": True}).encode())
        _Template(function, warm_up, connection, {}).serve()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
