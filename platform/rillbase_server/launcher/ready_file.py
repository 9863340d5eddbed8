"""The ready file, which notifies scripts that everything is ready, and of the server's address."""

import json
from dataclasses import asdict
from pathlib import Path

from .atomic_file import write_atomically
from .options import UpOptions
from .secrets_file import DemoCredentials


def write_ready_file(path: Path, options: UpOptions, demo: DemoCredentials) -> None:
    """Write the address and the demo's credentials, private and complete."""
    write_atomically(path, json.dumps({"url": options.url} | asdict(demo)) + "\n")
