"""The reference of the SDKs matches their source, and leaves no exported name out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import rillbase
from rillbase import dbapi
from scripts.sdk_reference import python, typescript
from scripts.sdk_reference.entry import Entry, Example
from scripts.write_sdk_reference import (
    DBAPI_NAMES,
    JAVASCRIPT_PAGE,
    MODULES,
    PYTHON_PAGE,
    SDK,
    javascript_page,
    python_page,
)

HEADING = re.compile(r"^### (\w+)$", re.MULTILINE)
#: Exports as the source writes them: lists of names, and declarations.
LIST = re.compile(r"^export (?:type )?\{([^}]*)\}", re.MULTILINE)
DECLARATION = re.compile(r"^export (?:class|interface|type|function|const) (\w+)", re.MULTILINE)
DECLARED = """\
/** A list that grows. */
export declare class Stack<T> extends List<T> {
    private readonly items;
    /** @internal */ readonly core: Core;
    /** How many there are. */
    get size(): number;
    /**
     * Puts one on top.
     *
     * @example
     * stack.push(1);
     */
    push(item: T, options?: {
        readonly silent?: boolean;
    }): void;
    push(item: null): never;
    private grow;
}
declare const hidden: number;
export {};
"""


def javascript_exports() -> set[str]:
    names = set[str]()
    for module in MODULES:
        source = (SDK / "src" / module.replace(".d.ts", ".ts")).read_text()
        listed = ",".join(LIST.findall(source)).replace("type ", "")
        names |= {name.strip() for name in listed.split(",") if name.strip()}
        names |= set(DECLARATION.findall(source))
    return names


def undocumented(entries: list[Entry]) -> list[str]:
    missing = [entry.name for entry in entries if not entry.prose]
    return missing + [
        f"{entry.name}.{member.name}"
        for entry in entries
        for member in entry.members
        if not member.prose and member.name != "constructor"
    ]


def test_the_javascript_page_has_exactly_the_exported_names() -> None:
    names = javascript_exports()
    assert {"createClient", "Query", "useQuery", "fileQueue", "WhereOperator"} <= names
    assert set(HEADING.findall(JAVASCRIPT_PAGE.read_text())) == names


def test_the_python_page_has_exactly_the_exported_names() -> None:
    names = {*rillbase.__all__, *DBAPI_NAMES}
    assert set(HEADING.findall(PYTHON_PAGE.read_text())) == names


def test_the_javascript_page_is_up_to_date() -> None:
    if not (SDK / "node_modules").exists():
        pytest.skip("the SDK's development packages are not installed")
    assert JAVASCRIPT_PAGE.read_text() == javascript_page(), (
        "run `python -m scripts.write_sdk_reference`"
    )


def test_the_python_page_is_up_to_date() -> None:
    assert PYTHON_PAGE.read_text() == python_page(), "run `python -m scripts.write_sdk_reference`"


def test_every_name_and_member_has_a_doc_comment() -> None:
    assert undocumented(python.exports(rillbase)) == []
    assert undocumented(python.entries(dbapi, DBAPI_NAMES)) == []
    text = JAVASCRIPT_PAGE.read_text()
    headings = re.findall(r"^####? (.+)\n\n```ts .*\n[^`]*```\n\n(#|\Z)", text, re.MULTILINE)
    assert [name for name, _ in headings if not name.endswith(".constructor")] == []


def test_synchronous_calls_show_the_types_that_they_return() -> None:
    entries = {entry.name: entry for entry in python.exports(rillbase)}
    signatures = {
        (name, member.name): member.signatures[0]
        for name, entry in entries.items()
        for member in entry.members
    }
    assert signatures["Query", "count"] == "def count() -> int"
    assert signatures["AsyncQuery", "count"] == "async def count() -> int"
    assert signatures["Query", "limit"] == "def limit(limit: int) -> Query"
    assert signatures["Query", "watch"] == "def watch() -> Iterator[Snapshot]"
    assert signatures["Later", "insert"].endswith("-> Future[Envelope]")
    assert signatures["Collection", "delete"] == (
        "def delete(identity: object, *, if_version: int | None = None) -> None"
    )


def test_private_members_are_left_out_and_overloads_joined(tmp_path: Path) -> None:
    module = tmp_path / "stack.d.ts"
    module.write_text(DECLARED)
    (stack,) = typescript.exports(module)
    assert (stack.name, stack.declaration) == ("Stack", "class Stack<T> extends List<T>")
    assert stack.prose == ("A list that grows.",)
    size, push = stack.members
    assert (size.signatures, size.prose) == (("get size(): number;",), ("How many there are.",))
    assert push.prose == ("Puts one on top.", Example("stack.push(1);"))
    assert push.signatures == (
        "push(item: T, options?: {\n    readonly silent?: boolean;\n}): void;",
        "push(item: null): never;",
    )
