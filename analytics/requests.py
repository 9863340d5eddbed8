"""Large queries on their way from a web server to the pipeline, as files in the dataset's folder.

`scans/ID.request` has tasks, a line of JSON each; `ID.answer` what they came to. A request that is
taken away is not wanted any more. Both are written under another name first, so that nobody reads
half of one. Whoever asked removes what is left; what a crash leaves goes after a day.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

FOLDER = "scans"
_REQUEST, _ANSWER = ".request", ".answer"


def ask(folder: Path, name: str, tasks: Sequence[str]) -> Path:
    """Write a request. Return its path."""
    path = folder / FOLDER / f"{name}{_REQUEST}"
    path.parent.mkdir(parents=True, exist_ok=True)
    _write(path, tasks)
    return path


def waiting(root: Path) -> list[Path]:
    """Return the requests of all datasets, the oldest first by their names."""
    return sorted(root.glob(f"*/{FOLDER}/*{_REQUEST}"), key=lambda path: path.name)


def tasks_of(request: Path) -> list[str]:
    return request.read_text().splitlines()


def answer(request: Path, lines: Sequence[str]) -> None:
    """Answer a request."""
    _write(request.with_suffix(_ANSWER), lines)


def answered(request: Path) -> list[str] | None:
    """Return the answer's lines, if there is one, and remove it."""
    path = request.with_suffix(_ANSWER)
    try:
        lines = path.read_text().splitlines()
    except FileNotFoundError:
        return None
    path.unlink()
    return lines


def _write(path: Path, lines: Sequence[str]) -> None:
    beginning = path.with_suffix(f"{path.suffix}.begun")
    beginning.write_text("\n".join(lines) + "\n")
    beginning.replace(path)
