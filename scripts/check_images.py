"""Check the contents of the images without building them: ``python -m scripts.check_images``.

Reads the Containerfiles, copies the server's files to a folder as its image would, makes the
folder read-only, and loads every command there that the chart runs. This detects files that a build
needs but .dockerignore excludes, and modules that are imported but not copied.
"""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "images"
IGNORED = ROOT / ".dockerignore"
#: Loads everything that the chart starts in the server's image, and checks that it is the copy.
PROGRAM = """
import importlib, sys
import django
django.setup()
from django.core.management import get_commands, load_command_class
for name in (
    "web", "relay", "views", "sources", "pipeline", "beat", "prepare_database", "await_servers",
):
    load_command_class("rillbase_server", name)
assert {"raise_installation_epoch", "checkpoint_storage"} <= set(get_commands())
for name in ("asgi", "celery", "launcher.celery_process", "smoke"):
    module = importlib.import_module("rillbase_server." + name)
    assert module.__file__.startswith(sys.argv[1]), module.__file__
"""


@dataclass(frozen=True)
class Line:
    """An instruction of a Containerfile."""

    word: str
    rest: str


def lines(file: Path) -> list[Line]:
    text = re.sub(r"^\s*#.*\n", "", file.read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    words = [each.split(None, 1) for each in text.splitlines() if each.strip()]
    return [Line(word.upper(), rest) for word, rest in words]


def files() -> list[Path]:
    return sorted(IMAGES.glob("*.Containerfile"))


def copied(file: Path, stage: str | None = None) -> Iterator[tuple[str, str]]:
    """Return what is copied from the repository, from and to, by one stage or by all."""
    inside = ""
    for line in lines(file):
        if line.word == "FROM":
            inside = line.rest.rpartition(" AS ")[2]
        if line.word != "COPY" or "--from=" in line.rest or (stage and stage != inside):
            continue
        *sources, target = [word for word in line.rest.split() if not word.startswith("--")]
        yield from ((source, target) for source in sources)


def is_ignored(path: str) -> bool:
    """Whether .dockerignore excludes a path; the last matching rule decides."""
    ignored = False
    for rule in IGNORED.read_text().splitlines():
        pattern = rule.removeprefix("!").strip()
        if not pattern or pattern.startswith("#"):
            continue
        if _fits(path, pattern):
            ignored = not rule.startswith("!")
    return ignored


def _fits(path: str, pattern: str) -> bool:
    if pattern.startswith("**/"):
        return pattern[3:] in path.split("/")
    parts = path.split("/")
    whole = ("/".join(parts[:count]) for count in range(1, len(parts) + 1))
    return any(fnmatch.fnmatchcase(each, pattern) for each in whole)


def complaints_of_texts() -> list[str]:
    """Return the problems in the Containerfiles' text."""
    complaints = []
    for file in files():
        read = lines(file)
        bases = [line.rest.split("=", 1)[1] for line in read if line.word == "ARG"]
        complaints += [
            (f"{file.name}: {base} does not name a release") for base in bases if not _pinned(base)
        ]
        users = [line.rest for line in read if line.word == "USER"]
        if not users or not re.fullmatch(r"[1-9]\d{3,}:[1-9]\d{3,}", users[-1]):
            complaints.append(f"{file.name}: the image would run as root")
        if sum(line.word == "FROM" for line in read) < 2:  # noqa: PLR2004 -- one to build, one to run
            complaints.append(
                f"{file.name}: the image has only one stage, so build tools would be shipped"
            )
        for source, _ in copied(file):
            if not (ROOT / source).exists():
                complaints.append(f"{file.name}: {source} is copied but does not exist")
            elif is_ignored(source):
                complaints.append(f"{file.name}: {source} is copied but excluded by .dockerignore")
    return complaints


def _pinned(base: str) -> bool:
    name, _, tag = base.rpartition(":")
    return "@sha256:" in base or (bool(name) and tag not in {"", "latest"})


def lay_out(folder: Path, stage: str = "server") -> None:
    """Copy what a stage of the server's image copies."""
    for source, target in copied(IMAGES / "server.Containerfile", stage):
        place = folder / target.removeprefix("./")
        if (ROOT / source).is_dir():
            skipped = shutil.ignore_patterns("__pycache__", "target", "node_modules", "dist")
            shutil.copytree(ROOT / source, place, ignore=skipped)
        else:
            place.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / source, place / Path(source).name)


def complaints_of_layout(folder: Path) -> list[str]:
    """Return what does not load in the layout."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": "/nonexistent",
        "PYTHONPATH": f"{folder}:{folder / 'platform'}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONSAFEPATH": "1",
        "DJANGO_SETTINGS_MODULE": "rillbase_server.settings",
        "DATABASE_URL": "postgresql://unused.invalid/unused",
        "RILLBASE_ENV": "test",
        "RILLBASE_SECRET_KEY": "k" * 40,
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return [] if done.returncode == 0 else [done.stderr.strip()[-800:]]


def main() -> int:
    complaints = complaints_of_texts()
    with tempfile.TemporaryDirectory(prefix="image-") as name:
        folder = Path(name) / "app"
        folder.mkdir()
        lay_out(folder)
        complaints += complaints_of_layout(folder)
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
