"""Check names, banned terms, and the paths in the architecture and recipes.

python -m scripts.check_names

The rules are in docs/glossary.md. `scripts/allowed_names.toml` lists the exceptions: a few names
that mean one thing in several implementations, and names that the Python SDK exports. An exception
that is no longer needed must be removed. Modules have none. `scripts/name_budgets.toml` limits the
uses of vague names (see `scripts/vague_names.py`).
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path

from scripts import vague_names
from scripts.repository import ROOT, tracked_files

ALLOWED = "scripts/allowed_names.toml"
MAX_ALLOWED = 30
GLOSSARY = "docs/glossary.md"
BANNED_TITLE = "## Banned terms"
#: Pages whose paths are checked.
PAGES = ("ARCHITECTURE.md", "CONTRIBUTING.md", GLOSSARY)
#: Programs outside the product: their names are local.
BESIDE = re.compile(
    r"(^|/)(tests|benches|migrations)/|^(benchmarks|examples)/|^native/(fuzz|loom)/"
)
#: Names that Django prescribes.
PRESCRIBED = frozenset({"Command", "Meta", "Migration"})
RUST_TYPE = re.compile(r"^(?:pub(?:\([^)]*\))? )?(?:struct|enum|trait) (\w+)", re.MULTILINE)
#: Participles, pronouns and adverbs, which do not describe a type.
_BARE = """
absent added after ahead alive alone also answered answering asked asking assigned attached
awaited away before begun beside bounded claimed closing committed counted counting declared
decoded deleted delivered delivering diverged done elsewhere empty ended ending exited expiring
failed fenced few fetched following found garbled gathered gone grouped heard held here hung
incomplete inner interrupted keeping kept killed known later latest lingering listed local
looked looking lost made many measured meeting merged metered missed moving named next nothing
now other others outer overtaken packed persisted placed planned polled prepared published read
reading received refused registered removed running sampling seen selected sent served shared
shown spooled standing stored subscribed taken telling them there those together told unchanged
unfinished unfit unknown unreadable untold used waiting wanted watched watching whoever written
"""
BARE = frozenset(_BARE.split())
#: A path on a page: with a folder, or with the ending of a file.
PATH = re.compile(r"`([\w.-]+(?:/[\w.-]+)*/?)`")
ENDINGS = (".css", ".lua", ".md", ".proto", ".py", ".rs", ".toml", ".ts", ".tsx", ".yaml")
BANNED_ROW = re.compile(r"^\| `([^`|]+)` \| ([^|]+) \|$", re.MULTILINE)


def main() -> int:
    """Print the problems; return how many there are."""
    files = tracked_files()
    definitions = types_of({name: (ROOT / name).read_text() for name in files if _has_types(name)})
    allowed = tomllib.loads((ROOT / ALLOWED).read_text())
    texts = {name: (ROOT / name).read_text() for name in files if is_public_text(name)}
    glossary, _, terms = texts[GLOSSARY].partition(BANNED_TITLE)
    texts[GLOSSARY] = glossary
    complaints = [
        *excess("type defined more than once", duplicates(definitions), allowed["duplicate_types"]),
        *excess("type with a bare name", bare(definitions), allowed["bare_types"]),
        *excess("module with a bare name", bare_modules(files), ()),
        *too_many(allowed),
        *banned_terms(texts, banned(terms)),
        *(missing for page in PAGES for missing in missing_paths(page, texts[page], files)),
        *vague_names.complaints(vague_names.areas()),
    ]
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return len(complaints)


def types_of(sources: Mapping[str, str]) -> dict[str, set[str]]:
    """Return the files that define each type."""
    files = defaultdict[str, set[str]](set)
    for file, text in sources.items():
        for name in _python_types(text) if file.endswith(".py") else RUST_TYPE.findall(text):
            if name not in PRESCRIBED:
                files[name].add(file)
    return files


def duplicates(definitions: Mapping[str, AbstractSet[str]]) -> set[str]:
    """Return the types that more than one file defines."""
    return {name for name, files in definitions.items() if len(files) > 1}


def bare(names: Iterable[str]) -> set[str]:
    """Return the names that consist of one meaningless word."""
    return {name for name in names if name.strip("_").lower() in BARE}


def bare_modules(files: Iterable[str]) -> set[str]:
    """Return the modules with such a name."""
    modules = [file for file in files if file.endswith((".py", ".rs")) and not BESIDE.search(file)]
    return {file for file in modules if bare([Path(file).stem])}


def excess(kind: str, present: AbstractSet[str], allowed: Iterable[str]) -> list[str]:
    """Compare names with the list of exceptions, which must not list more than there is."""
    listed = set(allowed)
    return [
        *(f"{kind}: {name}" for name in sorted(present - listed)),
        *(f"{ALLOWED}: remove {name}, no {kind} any more" for name in sorted(listed - present)),
    ]


def too_many(allowed: Mapping[str, Collection[str]]) -> list[str]:
    """Return a problem if there are too many exceptions."""
    count = sum(len(names) for names in allowed.values())
    return [f"{ALLOWED}: {count} names, {MAX_ALLOWED} at most"] if count > MAX_ALLOWED else []


def banned(section: str) -> dict[str, str]:
    """Return the terms that a section of the glossary bans, each with its replacement."""
    return {term: better.strip() for term, better in BANNED_ROW.findall(section)}


def banned_terms(texts: Mapping[str, str], terms: Mapping[str, str]) -> list[str]:
    """Return where texts use a banned term."""
    return [
        f"{file}:{number}: write {better!r} instead of {term!r}"
        for file, text in texts.items()
        for number, line in enumerate(text.splitlines(), 1)
        for term, better in terms.items()
        if re.search(rf"\b{re.escape(term)}\b", line, re.IGNORECASE)
    ]


def missing_paths(page: str, text: str, files: Iterable[str]) -> list[str]:
    """Return the paths on a page that are neither a file nor a folder of the repository."""
    existing = set[str]()
    for file in files:
        existing.update([file, *(str(folder) for folder in Path(file).parents)])
    return [
        f"{page}: the path {path} does not exist; write it from the repository's root"
        for path in dict.fromkeys(PATH.findall(text))
        if _is_path(path) and path.rstrip("/") not in existing
    ]


def is_public_text(file: str) -> bool:
    """Return whether users read a file: the documentation, or texts of the console."""
    return file in {"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"} or (
        (file.startswith("docs/") and file.endswith(".md"))
        or (file.startswith("console/src/") and file.endswith((".ts", ".tsx")))
        or (file.startswith("sdk/") and file.endswith((".py", ".ts")))
    )


def _is_path(text: str) -> bool:
    return text.endswith((*ENDINGS, "/")) or (
        text.split("/", maxsplit=1)[0] in _FOLDERS and "/" in text
    )


def _has_types(file: str) -> bool:
    return file.endswith((".py", ".rs")) and not BESIDE.search(file)


def _python_types(text: str) -> list[str]:
    return [node.name for node in ast.parse(text).body if isinstance(node, ast.ClassDef)]


_FOLDERS = frozenset(path.name for path in ROOT.iterdir() if path.is_dir())


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
