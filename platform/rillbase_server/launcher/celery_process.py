"""Celery's worker with an announcement: ``python -m … MARK worker ARGUMENT…``.

Celery announces that it is ready only in a log line, which the log level may suppress. Here its
signals write the process id to the file ``MARK``, for which the launcher waits. The file's time is
then renewed as long as the worker is connected to its broker, so probes check its age. A second
file, ``MARK.alive``, is renewed as long as the process runs: the broker may be unreachable for
hours, which is no reason to restart the worker.
"""

import contextlib
import gc
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from celery.bin.celery import main as celery_main
from celery.signals import heartbeat_sent, worker_before_create_process, worker_ready

from .atomic_file import write_atomically
from .liveness_file import keep_fresh, liveness_path

# A pod runs this module without the launcher, which sets the same umask.
PRIVATE_UMASK = 0o077
APPLICATION = "rillbase_server.celery"


def main(arguments: Sequence[str]) -> None:
    """Run Celery's own command line, announcing when it is ready."""
    os.umask(PRIVATE_UMASK)
    mark = Path(arguments[0])
    pid = os.getpid()  # pool processes inherit the signal's receiver, and must not announce

    def announce(**_: object) -> None:
        if os.getpid() == pid:
            write_atomically(mark, str(pid))

    def renew(**_: object) -> None:
        if os.getpid() == pid:
            with contextlib.suppress(FileNotFoundError):  # not ready yet
                os.utime(mark)

    keep_fresh(liveness_path(mark))
    worker_before_create_process.connect(freeze, weak=False)
    worker_ready.connect(announce, weak=False)
    heartbeat_sent.connect(renew, weak=False)
    sys.argv = ["celery", "--app", APPLICATION, "--quiet", *arguments[1:]]
    celery_main()


def freeze(**_: object) -> None:
    """Keep the garbage collector of pool processes from touching shared memory pages."""
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    main(sys.argv[1:])
