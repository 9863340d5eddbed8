"""What a machine may lack: a test that needs it is skipped with the reason and the remedy.

All such skips are made here, so that one reason has one text (see `tests/skipped.py`).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NoReturn

import pytest

from scripts import kube_tools
from scripts.provision import web_browser

KUBE_TOOLS = "make kube-tools"


def chromium() -> str:
    """Return the path of the browser."""
    return web_browser.find() or _skip("Chromium is not installed: make setup, as root")


def helm() -> Path:
    """Return the path of Helm."""
    return kube_tools.helm() or _skip(f"Helm has not been built: {KUBE_TOOLS}")


def kubernetes(name: str) -> Path:
    """Return the path of a program of Kubernetes."""
    program = kube_tools.program("kubernetes", name)
    return program or _skip(f"Kubernetes has not been built: {KUBE_TOOLS}")


def compose() -> Path:
    """Return the path of the loader of Compose files."""
    program = kube_tools.program("compose", "compose")
    return program or _skip(f"The loader of Compose files has not been built: {KUBE_TOOLS}")


def schemas(version: str) -> Path:
    """Return the folder with the schemas of a version of Kubernetes."""
    folder = kube_tools.schemas()
    missing = f"The schemas of Kubernetes have not been made: {KUBE_TOOLS}"
    return (folder or _skip(missing)) / version


def require_root(purpose: str) -> None:
    """Skip the test if this process does not run as root."""
    if os.geteuid() != 0:
        _skip(f"Only root can {purpose}")


def _skip(reason: str) -> NoReturn:
    pytest.skip(reason)
