"""A file whose time shows that a process is running, for processes without an endpoint."""

import threading
import time
from pathlib import Path

INTERVAL_S = 1.0


def liveness_path(mark: Path) -> Path:
    """Return the path of the liveness file that belongs to a process's mark."""
    return mark.with_name(f"{mark.name}.alive")


def keep_fresh(path: Path) -> None:
    """Renew the file for as long as this process runs. Processes that it forks do not."""
    threading.Thread(target=_renew, args=(path,), name="sign", daemon=True).start()


def _renew(path: Path) -> None:
    while True:
        path.touch()
        time.sleep(INTERVAL_S)
