"""A file whose time shows that a process is running, for processes without an endpoint."""

import threading
import time
from pathlib import Path

INTERVAL_S = 1.0


def sign_of(mark: Path) -> Path:
    """Return the path of the liveness file that belongs to a process's mark."""
    return mark.with_name(f"{mark.name}.alive")


def begin_signs(sign: Path) -> None:
    """Renew the file for as long as this process runs. Processes that it forks do not."""
    threading.Thread(target=_renew, args=(sign,), name="sign", daemon=True).start()


def _renew(sign: Path) -> None:
    while True:
        sign.touch()
        time.sleep(INTERVAL_S)
