"""Check that the licences of shipped packages allow commercial use.

    python -m scripts.check_licences

Reads the metadata of the installed Python packages and of the crates. A package with unclear
metadata is listed below with the licence found in its text.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from scripts.check_locks import PIN, ROOT

ALLOWED = re.compile(
    r"\b(MIT|BSD|Apache|ISC|PSF|Python Software Foundation|Python-2\.0|MPL|Mozilla|LGPL|"
    r"Lesser General Public|Unlicense|0BSD|Zlib|Unicode|PostgreSQL|HPND|CC0|BSL-1\.0|"
    r"Public Domain)",
    re.IGNORECASE,
)
#: A strong copyleft is a problem unless a permissive alternative is offered.
FORBIDDEN = re.compile(r"(?<![L])\b(A?GPL)|Affero|SSPL|BUSL|Commons Clause", re.IGNORECASE)
READ_BY_HAND: dict[str, str] = {}


def main() -> int:
    """Print the problems; return how many there are."""
    complaints = [*_python(), *_rust()]
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return len(complaints)


def _python() -> list[str]:
    names = [name for name, _ in PIN.findall((ROOT / "requirements/runtime.txt").read_text())]
    complaints = []
    for name in names:
        try:
            licence = READ_BY_HAND.get(name) or _licence_of(distribution(name))
        except PackageNotFoundError:
            continue  # for another platform or version of Python
        if not _is_allowed(licence):
            complaints.append(
                f"{name}: licence {licence[:80]!r} is not on the list of allowed ones"
            )
    return complaints


def _licence_of(package: Distribution) -> str:
    """Return a package's licence metadata, the most precise first."""
    metadata = package.metadata
    if "License-Expression" in metadata:
        return metadata["License-Expression"]
    classifiers = [c for c in metadata.get_all("Classifier") or [] if c.startswith("License ::")]
    if classifiers:
        return "; ".join(classifiers)
    if "License" in metadata:
        return metadata["License"].splitlines()[0]
    texts = [f for f in package.files or [] if "LICENSE" in f.name.upper()]
    return Path(str(package.locate_file(texts[0]))).read_text()[:300] if texts else ""


def _rust() -> list[str]:
    listed = subprocess.run(
        [
            "cargo",
            "metadata",
            "--format-version=1",
            "--locked",
            "--manifest-path",
            str(ROOT / "native/Cargo.toml"),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    return [
        f"crate {crate['name']}: licence {crate['license']!r} is not on the list of allowed ones"
        for crate in json.loads(listed.stdout)["packages"]
        if not _is_allowed(crate["license"] or "")
    ]


def _is_allowed(licence: str) -> bool:
    choices = re.split(r"\s+OR\s+|/", licence)
    return any(ALLOWED.search(choice) and not FORBIDDEN.search(choice) for choice in choices)


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
