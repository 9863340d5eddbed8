"""The folder for temporary files of one start, so that processes that are killed leave nothing.

It is in the machine's temporary folder, because a path in a data directory may be too long for the
sockets in it. A link in the data directory names it: the next start removes what a killed launcher
could not.
"""

import os
import shutil
import tempfile
from pathlib import Path

from .data_directory import DataDirectory

VARIABLE = "TMPDIR"
PREFIX = "rillbase-"


def create(directory: DataDirectory) -> dict[str, str]:
    """Create the folder; return the variable by which processes use it."""
    remove(directory)
    folder = tempfile.mkdtemp(prefix=PREFIX)
    # The demo's database, which runs under another account then, is below it.
    Path(folder).chmod(0o711 if os.geteuid() == 0 else 0o700)
    directory.temporary.symlink_to(folder)
    return {VARIABLE: folder}


def remove(directory: DataDirectory) -> None:
    """Remove the folder of this start or an earlier one, if there is one."""
    link = directory.temporary
    if not link.is_symlink():
        return
    folder = link.readlink()
    # Others may have made a folder of this name since the machine was started.
    if folder.name.startswith(PREFIX) and folder.is_dir() and folder.stat().st_uid == os.geteuid():
        shutil.rmtree(folder, ignore_errors=True)
    link.unlink()
