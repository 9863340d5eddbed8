"""The account that runs embedded servers.

PostgreSQL refuses to run as root, and no server should. Ordinary users run the servers under their
own account. Root runs them under an unprivileged account, which owns the servers' directories and
must be able to reach them: a directory below a closed parent (``/root``) cannot be used, regardless
of its own mode.
"""

import os
import pwd
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

UNPRIVILEGED_NAME = "nobody"


@dataclass(frozen=True)
class Account:
    """A user that a child process is switched to before it starts."""

    name: str
    uid: int
    gid: int


def server_account() -> Account | None:
    """The account for embedded servers, or None to run them as the calling user."""
    if os.geteuid() != 0:
        return None
    entry = pwd.getpwnam(UNPRIVILEGED_NAME)
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)


def closed_ancestor(path: Path, account: Account) -> Path | None:
    """The outermost directory above ``path`` that ``account`` cannot pass through, if any."""
    for directory in _ancestors(path):
        if directory.exists() and not _may_traverse(directory.stat(), account):
            return directory
    return None


def set_owner(path: Path, account: Account | None) -> None:
    """Make ``account`` the owner of ``path`` alone (not of what lies below it)."""
    if account is not None:
        os.chown(path, account.uid, account.gid)


def private_directory(path: Path, account: Account | None) -> Path:
    """``path`` as an existing directory that only ``account`` (or the caller) may enter."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    set_owner(path, account)
    path.chmod(0o700)
    return path


def _ancestors(path: Path) -> Iterator[Path]:
    yield from reversed(path.resolve().parents)


def _may_traverse(status: os.stat_result, account: Account) -> bool:
    if status.st_uid == account.uid:
        return bool(status.st_mode & stat.S_IXUSR)
    if status.st_gid == account.gid:
        return bool(status.st_mode & stat.S_IXGRP)
    return bool(status.st_mode & stat.S_IXOTH)
