"""Check the lock files: they name no registry's host, and every package is pinned with its hashes.

    python -m scripts.check_locks

Also checks that each direct dependency is in its lock file with the requested version. This detects
an edited `.in` file whose lock file has not been compiled again, without access to a registry.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: The files with direct dependencies; each has its lock file beside it.
DIRECT_FILES = (
    *(
        ROOT / "requirements" / f"{name}.in"
        for name in ("bootstrap", "server", "docs", "runtime", "spark", "dev", "release")
    ),
    *sorted(ROOT.glob("examples/*/requirements.in")),
)
PIN = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==([^\s;\\]+)", re.MULTILINE)
DIRECT = re.compile(
    r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?(?:==([^\s;#]+))?\s*(?:[;#].*)?$", re.MULTILINE
)
URL = re.compile(r"https?://[^\s\"']+|--(?:extra-)?index-url|--find-links")
#: The name that Cargo.lock always uses for the public index, even with a mirror.
CARGO_INDEX = "registry+https://github.com/rust-lang/crates.io-index"


def main() -> int:
    """Print the problems; return how many there are."""
    complaints = [complaint for direct in DIRECT_FILES for complaint in _check_pair(direct)]
    for lock in ROOT.glob("native/**/Cargo.lock"):
        complaints += _hosts(lock, lock.read_text().replace(CARGO_INDEX, ""))
    for lock in ROOT.glob("**/package-lock.json"):
        if "node_modules" not in lock.parts and ".venv" not in lock.parts:
            complaints += _hosts(lock, "\n".join(re.findall(r'"resolved": .*', lock.read_text())))
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return len(complaints)


def _check_pair(direct: Path) -> list[str]:
    lock = direct.with_suffix(".txt")
    name, text = lock.relative_to(ROOT), lock.read_text()
    pinned = {_normal(package): version for package, version in PIN.findall(text)}
    complaints = _hosts(lock, text)
    blocks = re.split(r"\n(?=\S)", text.strip())
    complaints += [
        f"{name}: {block.splitlines()[0]} has no hash"
        for block in blocks
        if block and not block.startswith("#") and "--hash=sha256:" not in block
    ]
    for package, version in DIRECT.findall(direct.read_text()):
        locked = pinned.get(_normal(package))
        if locked is None:
            complaints.append(f"{name} lacks {package}: compile it again")
        elif version and locked != version:
            complaints.append(f"{name} has {package} {locked}, not {version} as asked")
    return complaints


def _hosts(lock: Path, text: str) -> list[str]:
    return [f"{lock.relative_to(ROOT)} names a host: {host}" for host in URL.findall(text)]


def _normal(package: str) -> str:
    return re.sub(r"[-_.]+", "-", package).lower()


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
