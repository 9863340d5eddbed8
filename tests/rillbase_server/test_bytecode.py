"""A process does not compile what `make setup` has compiled."""

from __future__ import annotations

import subprocess
import sys

#: The native module's Python is a few lines, and it is installed after every change of Rust.
MISSING = """
import sys
from pathlib import Path
import rillbase_server.asgi
files = [module.__cached__ for module in list(sys.modules.values())
         if "site-packages" in (getattr(module, "__file__", None) or "")
         and getattr(module, "__cached__", None) and module.__name__ != "rillbase_native"]
assert files
print(*sorted(file for file in files if not Path(file).exists()))
"""


def test_the_packages_that_a_server_loads_have_bytecode() -> None:
    command = [sys.executable, "-B", "-c", MISSING]
    process = subprocess.run(command, capture_output=True, text=True, check=True)
    assert process.stdout.split() == []
