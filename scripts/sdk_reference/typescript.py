"""Reads the declarations that the TypeScript compiler writes for the JavaScript SDK.

The compiler prints one member a line or, where a type has members itself, indents these further.
So a declaration or a member ends at the first line that closes all of its brackets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

from scripts.sdk_reference.entry import DocumentedMember, Entry, Example

INDENT = "    "
_REEXPORT = re.compile(r"export (?:type )?\{(?P<names>[^}]*)\} from \"(?P<module>[^\"]+)\.js\";")
_DECLARED = re.compile(
    r"export (?:declare )?(?:abstract )?(?P<kind>class|interface|function|type|const) (?P<name>\w+)"
)
_MEMBER = re.compile(r"(?:static |readonly |get |set |async )*(?P<name>\w+)")
#: Private members, constructors that only the SDK calls, names of errors, and conversions that
#: JavaScript calls itself.
_HIDDEN = re.compile(
    r"(private|protected) |constructor\(\s*core\b|readonly name = |(toString|toJSON|valueOf)\("
)
_COMMENT = re.compile(r"/\*\*.*?\*/\s*", re.DOTALL)
_PAIRS = {"(": 1, "{": 1, "[": 1, ")": -1, "}": -1, "]": -1}


@dataclass(frozen=True, slots=True)
class _CommentedStatement:
    comment: str
    text: str


def exports(module: Path) -> list[Entry]:
    """Return what a module exports: what it re-exports, then what it declares itself."""
    text = module.read_text()
    entries = [
        entry
        for found in _REEXPORT.finditer(text)
        for entry in _named(module.parent / f"{found['module']}.d.ts", found["names"])
    ]
    return entries + list(_declared(text).values())


def _named(module: Path, names: str) -> Iterator[Entry]:
    declared = _declared(module.read_text())
    for name in names.replace("type ", "").split(","):
        if name.strip():
            yield declared[name.strip()]


def _declared(text: str) -> dict[str, Entry]:
    found = ((_DECLARED.match(statement.text), statement) for statement in _statements(text, ""))
    return {head["name"]: _entry(head, statement) for head, statement in found if head is not None}


def _entry(head: re.Match[str], statement: _CommentedStatement) -> Entry:
    text = statement.text.removeprefix("export ").removeprefix("declare ")
    prose = _prose(statement.comment)
    if head["kind"] != "class":
        return Entry(head["name"], text, prose)
    line, _, body = text.partition("{\n")
    members = (member for member in _statements(body, INDENT) if not _is_hidden(member))
    return Entry(head["name"], line.strip(), prose, tuple(_members(members)))


def _members(statements: Iterator[_CommentedStatement]) -> Iterator[DocumentedMember]:
    """Join the overloads of a method, which only the first one has a comment for."""
    member: DocumentedMember | None = None
    for statement in statements:
        text = _COMMENT.sub("", statement.text)
        match = _MEMBER.match(text)
        if match is None:
            raise ValueError(text)
        if member is not None and member.name == match["name"]:
            member = DocumentedMember(member.name, (*member.signatures, text), member.prose)
            continue
        if member is not None:
            yield member
        member = DocumentedMember(match["name"], (text,), _prose(statement.comment))
    if member is not None:
        yield member


def _is_hidden(statement: _CommentedStatement) -> bool:
    text = _COMMENT.sub("", statement.text)
    return "@internal" in statement.comment or _HIDDEN.match(text) is not None


def _statements(text: str, indent: str) -> Iterator[_CommentedStatement]:
    """Yield the statements at a level of indentation, each with the comment before it."""
    comment, lines = "", list[str]()
    for line in text.splitlines():
        if not lines and not line.startswith(indent):
            continue
        lines.append(line.removeprefix(indent))
        block = "\n".join(lines)
        if block.startswith("/*") and "*/" not in block:
            continue
        inner = _COMMENT.sub("", block) if block.startswith("/*") else block
        if not inner.strip():
            comment, lines = block, []
        elif _is_complete(inner):
            leading = _COMMENT.match(block)
            yield _CommentedStatement(leading[0] if leading else comment, inner)
            comment, lines = "", []


def _is_complete(text: str) -> bool:
    bare = _COMMENT.sub("", text)
    return bare.endswith((";", "}")) and sum(_PAIRS.get(letter, 0) for letter in bare) == 0


def _prose(comment: str) -> tuple[str | Example, ...]:
    """Return a doc comment's paragraphs and examples."""
    lines = comment.strip().removeprefix("/**").removesuffix("*/").splitlines()
    text = "\n".join(re.sub(r"^ *\* ?", "", line).rstrip() for line in lines).strip()
    prose, *examples = re.split(r"^@example\n", text, flags=re.MULTILINE)
    prose = re.sub(r"^@deprecated ", "Deprecated: ", prose, flags=re.MULTILINE)
    paragraphs = (" ".join(block.split()) for block in prose.split("\n\n") if block.strip())
    return (*paragraphs, *(Example(dedent(example).strip()) for example in examples))
