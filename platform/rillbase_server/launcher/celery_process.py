"""Celery's worker and beat with an announcement: ``python -m … MARK worker|beat ARGUMENT…``.

Celery itself says that it is ready only in a log line, which the log level may suppress. Here its
signals write the process id to the file ``MARK``, which the launcher waits for.
"""

import gc
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from celery.bin.celery import main as celery_main
from celery.signals import beat_init, worker_before_create_process, worker_ready

from .atomic_file import write_atomically

APPLICATION = "rillbase_server.celery"


def main(arguments: Sequence[str]) -> None:
    """Run Celery's own command line, announcing when it is ready."""
    mark = Path(arguments[0])
    pid = os.getpid()  # pool processes inherit the signal's receiver, and must not announce

    def announce(**_: object) -> None:
        if os.getpid() == pid:
            write_atomically(mark, str(pid))

    worker_before_create_process.connect(freeze, weak=False)
    worker_ready.connect(announce, weak=False)
    beat_init.connect(announce, weak=False)
    sys.argv = ["celery", "--app", APPLICATION, "--quiet", *arguments[1:]]
    celery_main()


def freeze(**_: object) -> None:
    """Keep the garbage collector of pool processes off the memory that they share with us."""
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    main(sys.argv[1:])
