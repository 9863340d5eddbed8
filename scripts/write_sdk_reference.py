"""Write docs/reference/javascript.md and docs/reference/python.md from the SDKs themselves.

python -m scripts.write_sdk_reference

The JavaScript page needs the SDK's development packages, which `make setup` installs.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from scripts.sdk_reference import python, typescript
from scripts.sdk_reference.entry import Entry, Section, markdown

ROOT = Path(__file__).resolve().parent.parent
JAVASCRIPT_PAGE = ROOT / "docs/reference/javascript.md"
PYTHON_PAGE = ROOT / "docs/reference/python.md"
SDK = ROOT / "sdk/js"
#: The modules that the package `rillbase` exports, and the titles of their sections.
MODULES = {
    "index.d.ts": "rillbase",
    "react/index.d.ts": "rillbase/react",
    "node/index.d.ts": "rillbase/node",
}
JAVASCRIPT_HEAD = """\
# JavaScript reference

Every name that the package `rillbase` exports, with its types. [The guide](../guide/sdk-js.md)
explains how to use them. This page is generated from the source by
`python -m scripts.write_sdk_reference`.

"""
PYTHON_HEAD = """\
# Python reference

Every name that the package `rillbase` exports, with its types. [The guide](../guide/sdk-python.md)
explains how to use them. In the examples, `db` is a client, and `todos`, `visits` and `sales` are
a collection, an aggregate and a dataset; `connection` and `cursor` are those of `rillbase.dbapi`.
This page is generated from the source by `python -m scripts.write_sdk_reference`.

"""
#: The first names of the sections of the Python page, in the order of the page.
PYTHON_SECTIONS: Mapping[str, tuple[str, ...]] = {
    "Synchronous client": ("Client", "Collection", "Query", "Later", "Aggregate", "Dataset"),
    "Asynchronous client": (
        *("AsyncClient", "AsyncCollection", "AsyncQuery", "AsyncAggregate", "AsyncDataset"),
    ),
    "Errors": ("RillbaseError",),
}
#: The names of `rillbase.dbapi` on the Python page. PEP 249 describes the others.
DBAPI_NAMES = ("connect", "SqlConnection", "SqlCursor")


def javascript_page() -> str:
    """Return the JavaScript page's text."""
    with tempfile.TemporaryDirectory() as folder:
        compiler = SDK / "node_modules/.bin/tsc"
        options = ("-p", "tsconfig.json", "--emitDeclarationOnly", "--outDir", folder)
        subprocess.run([compiler, *options], cwd=SDK, check=True)
        sections = [
            Section(title, tuple(typescript.exports(Path(folder) / module)))
            for module, title in MODULES.items()
        ]
    return JAVASCRIPT_HEAD + _joined(sections, "ts")


def python_page() -> str:
    """Return the Python page's text."""
    import rillbase.dbapi  # noqa: PLC0415 -- only on the path where the SDK is

    driver = Section("rillbase.dbapi", tuple(python.entries(rillbase.dbapi, DBAPI_NAMES)))
    sections = [*_python_sections(python.exports(rillbase)), driver]
    return PYTHON_HEAD + _joined(sections, "python")


def _python_sections(entries: Iterable[Entry]) -> list[Section]:
    left = {entry.name: entry for entry in entries}
    sections = []
    for title, names in PYTHON_SECTIONS.items():
        chosen = [left.pop(name) for name in names]
        if title == "Errors":
            chosen += [left.pop(name) for name in list(left) if _is_error(left[name])]
        sections.append(Section(title, tuple(chosen)))
    return [*sections, Section("Options, results and values", tuple(left.values()))]


def _is_error(entry: Entry) -> bool:
    return "(RillbaseError)" in entry.declaration


def _joined(sections: Iterable[Section], language: str) -> str:
    return "\n".join(markdown(section, language) for section in sections)


if __name__ == "__main__":
    JAVASCRIPT_PAGE.write_text(javascript_page())
    sys.path.insert(0, str(ROOT / "sdk/python"))
    PYTHON_PAGE.write_text(python_page())
