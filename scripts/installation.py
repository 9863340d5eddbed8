"""An installation for scripts that show the product."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

POLL_S = 0.2


@contextmanager
def installation(ready_file: Path | None) -> Iterator[dict[str, str]]:
    """Yield the address and the login of an installation."""
    if ready_file is not None:
        yield json.loads(ready_file.read_text())
        return
    with tempfile.TemporaryDirectory(prefix="rillbase-pictures-") as directory:
        # Servers that run as an account of their own must reach their data.
        Path(directory).chmod(0o711)
        file = Path(directory) / "ready.json"
        options = ("--data-dir", f"{directory}/data", "--ready-file", str(file))
        process = subprocess.Popen([sys.executable, "manage.py", "up", "--port", "0", *options])
        try:
            while not file.exists() and process.poll() is None:
                time.sleep(POLL_S)
            yield json.loads(file.read_text())
        finally:
            process.terminate()
            process.wait()
