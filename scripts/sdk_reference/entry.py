"""A name that an SDK exports, and its Markdown."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Example:
    """Code of a doc comment."""

    text: str


@dataclass(frozen=True, slots=True)
class DocumentedMember:
    """A method or property of a class: its signatures, and what its doc comment says."""

    name: str
    signatures: tuple[str, ...]
    prose: tuple[str | Example, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """An exported name: its declaration, what its doc comment says, and its members."""

    name: str
    declaration: str
    prose: tuple[str | Example, ...] = ()
    members: tuple[DocumentedMember, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """Entries that belong together, under a title."""

    title: str
    entries: tuple[Entry, ...]


def markdown(section: Section, language: str) -> str:
    """Return a section's Markdown."""
    entries = (_entry(entry, language) for entry in section.entries)
    return f"## {section.title}\n\n" + "\n".join(entries)


def _entry(entry: Entry, language: str) -> str:
    head = f"### {entry.name}\n\n{_declaration(entry.declaration, language)}"
    members = (_member(entry.name, member, language) for member in entry.members)
    return head + _prose(entry.prose, language) + "".join(members)


def _member(owner: str, member: DocumentedMember, language: str) -> str:
    declaration = _declaration("\n".join(member.signatures), language)
    return f"\n#### {owner}.{member.name}\n\n{declaration}{_prose(member.prose, language)}"


def _prose(parts: tuple[str | Example, ...], language: str) -> str:
    return "".join(
        f"\n{part}\n"
        if isinstance(part, str)
        else f'\n```{language} {{data-not-run="an excerpt"}}\n{part.text}\n```\n'
        for part in parts
    )


def _declaration(text: str, language: str) -> str:
    return f'```{language} {{data-not-run="a declaration"}}\n{text}\n```\n'
