"""Runs the examples that are programs: shell, Python, JavaScript."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.documentation.fences import ROOT
from tests.shell import Shell

TIMEOUT_S = 120.0
FAILED = "-- failed:"
REFUSED = "-- refused --"
#: A wrapper of curl that reports error responses.
_CURL = f"""#!/bin/sh
"{{curl}}" --fail-with-body "$@"
status=$?
[ $status -eq 22 ] || exit $status
echo '{REFUSED}' >&2
"""


class Terminal:
    """A shell for the examples of a page, which keeps variables between them."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        shell.paste(f"trap 'echo \"{FAILED} $BASH_COMMAND\"' ERR")

    def run(self, text: str, attributes: Mapping[str, str]) -> None:
        """Run an example to its end, or until its output has what `data-until` says."""
        until = attributes.get("until")
        if until is not None:
            self._run_until(text, until)
            return
        shown = self._shell.paste(text)
        assert FAILED not in shown, shown
        assert shown.count(REFUSED) == int(attributes.get("refused", "0")), shown

    def _run_until(self, text: str, until: str) -> None:
        begin = len(self._shell.transcript)
        self._shell.paste(f"{{\n{text}}} &")
        self._shell.wait_for(until, begin)
        self._shell.paste("kill %%; wait %% || true")


@contextmanager
def terminal(folder: Path, **variables: str) -> Iterator[Terminal]:
    """Open a terminal in a folder, with the programs of this checkout at hand."""
    tools = folder / ".tools"
    tools.mkdir()
    curl = shutil.which("curl")
    assert curl is not None
    (tools / "curl").write_text(_CURL.format(curl=curl))
    (tools / "curl").chmod(0o755)
    path = os.pathsep.join([str(tools), str(Path(sys.executable).parent), os.environ["PATH"]])
    shell = Shell(folder, **variables, PATH=path, PYTHONUNBUFFERED="1")
    try:
        yield Terminal(shell)
    finally:
        shell.close()


def run_python(source: str, folder: Path) -> str:
    """Run a page's Python with the SDK. Return what it prints."""
    (folder / "example.py").write_text(source)
    paths = os.pathsep.join([str(ROOT / "sdk" / "python"), os.environ["PYTHONPATH"]])
    return _run([sys.executable, "-W", "error", "example.py"], folder, PYTHONPATH=paths)


def run_javascript(source: str, folder: Path) -> str:
    """Run a page's JavaScript with the SDK and the packages that its tests use. Return what it
    prints.
    """
    is_module = "require(" not in source
    name = "example.mjs" if is_module else "example.cjs"
    # Subscriptions would keep the program alive; the page is over.
    (folder / name).write_text(f"{source}\nprocess.exit(0);\n")
    modules, sdk = folder / "node_modules", ROOT / "sdk" / "js"
    modules.mkdir()
    (modules / "rillbase").symlink_to(sdk)
    for package in ("graphql", "graphql-ws"):
        (modules / package).symlink_to(sdk / "node_modules" / package)
    # Node.js 20 has a WebSocket, behind this switch; later ones have it without.
    return _run(["node", "--experimental-websocket", name], folder)


def _run(argv: list[str], folder: Path, **variables: str) -> str:
    ran = subprocess.run(
        argv,
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert ran.returncode == 0, f"{ran.stdout}\n{ran.stderr}"
    return ran.stdout


def prints(printed: str, shown: str) -> None:
    """Check that a program prints what the page shows, where `…` stands for what differs."""
    pattern = re.escape(shown.strip()).replace("…", ".*")
    assert re.fullmatch(pattern, printed.strip()), f"{printed}\nis shown as\n{shown}"
