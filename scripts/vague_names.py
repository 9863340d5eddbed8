"""Count the names that say little, by area of the code, and compare with the budget of each area.

python -m scripts.vague_names           a table of the areas
python -m scripts.vague_names AREA      the names of one area, with their first places
python -m scripts.vague_names --lower   lower the budgets to today's counts

A name is vague if one of its words belongs to a conversation ("told", "heard") instead of to
databases. It counts wherever it is used: in functions, locals, attributes, parameters and types of
Python, Rust, TypeScript and Lua. `scripts/name_budgets.toml` has the areas; a budget only falls.
A word is a hint: give the thing the name that its field uses.
"""

from __future__ import annotations

import argparse
import ast
import functools
import re
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from scripts.repository import ROOT, tracked_files

BUDGETS = ROOT / "scripts" / "name_budgets.toml"
#: By what they are about.
_VAGUE = {
    "speech": "ask asked asker asking greet greeted hear heard hearing hears said say saying says "
    "speak spoken tell telling tellings tells told untold",
    "opinion": "accuse accused belief believe believed believes guilty judge judged judgement "
    "judges knew know known knows meant notice noticed seen sees sight supposed want wanted "
    "wanting wants wish wished wishes",
    "people": "everybody giver holder mourner nobody somebody stranger strangers taker whoever",
    "life": "alive birth born buried bury dead died dies dying life lives wake woken",
    "possession": "found finds gave gives given grace graces held holdings keep keeping keeps kept "
    "loses lost taken takes",
    "movement": "came come comes coming goes gone stand standing stands stood went",
    "place and time": "afterwards anew elsewhere ended ends meanwhile moment moments somewhere "
    "surroundings",
    "the rest": "bell bells door doors duties duty lets mailed meeting meetings patience stuff "
    "thing things",
}
VAGUE = frozenset(word for words in _VAGUE.values() for word in words.split())
#: Terms of the trade, and names of libraries, that contain such a word.
TERMS = re.compile(
    r"dead_?(?:letter|line|lock)|ends_?with|given_?name|is_?alive|keep_?alive|known_?hosts"
    r"|life_?(?:cycle|time)|lost_?update|not_?found|take_?while|wake_?(?:by|r|up)",
    re.IGNORECASE,
)
#: An expression in a template of TypeScript, which may have one pair of braces or backquotes.
_EXPRESSION = r"\$\{((?:[^{}`]|\{[^{}]*\}|`[^`]*`)*)\}"
EXPRESSION = re.compile(_EXPRESSION)
#: What is not code: comments, strings and characters.
_TEXT = {
    ".rs": re.compile(
        r"//[^\n]*|/\*.*?\*/|\bb?r(#*)\".*?\"\1|\"(?:\\.|[^\"\\])*\"|'(?:\\[^']+|\\'|[^\\'])'",
        re.DOTALL,
    ),
    ".lua": re.compile(r"--[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"),
    ".ts": re.compile(
        r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"
        rf"|`(?:{_EXPRESSION}|\\.|[^`\\])*`",
        re.DOTALL,
    ),
}
_LANGUAGES = {".tsx": ".ts", ".js": ".ts", ".jsx": ".ts", ".vue": ".ts", ".svelte": ".ts"}
#: Written by a program, or a migration of the past.
GENERATED = re.compile(r"/migrations/|/dist/|^console/src/api/types\.ts$")
IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
#: One word of an identifier: `HTTP`, `Held`, `held`.
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
#: What follows a name in code. Markup has sentences between its tags.
CODE_FOLLOWS = re.compile(r"\s*[=(:.,;)\]?!]")
CODE_PRECEDES = re.compile(r"(?:[.(\[{,]|\b(?:const|let|var|function|class|type|interface) )\s*$")


@dataclass(frozen=True)
class Area:
    """A part of the code with a budget of vague names."""

    name: str
    folders: tuple[str, ...]
    budget: int
    #: By name: its places, as `FILE:LINE`.
    places: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    @property
    def count(self) -> int:
        return sum(map(len, self.places.values()))


def areas() -> list[Area]:
    """Count the vague names of the repository."""
    listed = [
        Area(name, tuple(f"{folder}/" for folder in area["folders"]), area["budget"])
        for name, area in tomllib.loads(BUDGETS.read_text()).items()
    ]
    for file in tracked_files():
        area = next((area for area in listed if file.startswith(area.folders)), None)
        if area is not None and not GENERATED.search(file):
            for line, name in vague_names(file, (ROOT / file).read_text(errors="replace")):
                area.places[name].append(f"{file}:{line}")
    return listed


def complaints(listed: Iterable[Area]) -> Iterator[str]:
    """Compare each area with its budget, which must not be higher than needed."""
    for area in listed:
        if area.count > area.budget:
            yield (
                f"{area.name}: {area.count} vague names, {area.budget} allowed; they are listed by "
                f"`python -m scripts.vague_names {area.name}`"
            )
        elif area.count < area.budget:
            yield (
                f"{area.name}: {area.count} vague names, {area.budget} allowed; lower it by "
                "`python -m scripts.vague_names --lower`"
            )


def vague_names(file: str, text: str) -> Iterator[tuple[int, str]]:
    """Return the line and the text of each vague name in a file."""
    suffix = Path(file).suffix
    language = _LANGUAGES.get(suffix, suffix)
    if language in {".py", ".pyi"}:
        names = _python_names(text)
    elif language in _TEXT:
        names = _other_names(text, language)
    else:
        return
    yield from ((line, name) for line, name in names if is_vague(name))


@functools.cache
def is_vague(name: str) -> bool:
    """Return whether a word of the name says little."""
    words = {word.lower() for word in WORD.findall(TERMS.sub("_", name))}
    return not words.isdisjoint(VAGUE)


#: The fields of each kind of node that are names.
_NAMES: Mapping[type[ast.AST], tuple[str, ...]] = {
    ast.alias: ("name", "asname"),
    ast.arg: ("arg",),
    ast.AsyncFunctionDef: ("name",),
    ast.Attribute: ("attr",),
    ast.ClassDef: ("name",),
    ast.ExceptHandler: ("name",),
    ast.FunctionDef: ("name",),
    ast.ImportFrom: ("module",),
    ast.keyword: ("arg",),
    ast.MatchAs: ("name",),
    ast.MatchMapping: ("rest",),
    ast.MatchStar: ("name",),
    ast.Name: ("id",),
}
#: The same for fields with a list of names.
_NAME_LISTS: Mapping[type[ast.AST], str] = {
    ast.Global: "names",
    ast.MatchClass: "kwd_attrs",
    ast.Nonlocal: "names",
}


def _python_names(text: str) -> Iterator[tuple[int, str]]:
    """Return each name that the syntax tree has. It is the same in every version of Python."""
    for node in ast.walk(ast.parse(text)):
        for attribute in _NAMES.get(type(node), ()):
            for name in (getattr(node, attribute) or "").split("."):
                yield node.lineno, name  # type: ignore[attr-defined]
        if type(node) in _NAME_LISTS:
            for name in getattr(node, _NAME_LISTS[type(node)]):
                yield node.lineno, name  # type: ignore[attr-defined]


def _other_names(text: str, language: str) -> Iterator[tuple[int, str]]:
    """Return each name outside comments and strings."""
    code = _TEXT[language].sub(_blank, text)
    for number, line in enumerate(code.splitlines(), 1):
        for match in IDENTIFIER.finditer(line):
            if language == ".ts" and not _is_code(line, match):
                continue
            yield number, match[0]


def _blank(match: re.Match[str]) -> str:
    """Return what remains of a text: its lines, and the expressions of a template."""
    expressions = EXPRESSION.findall(match[0]) if match[0].startswith("`") else []
    return "\n" * match[0].count("\n") + " ".join(["", *(f"({code})" for code in expressions), ""])


def _is_code(line: str, match: re.Match[str]) -> bool:
    """Return whether a word of a line is a name and not a word of a sentence in markup."""
    if not match[0].islower() or "_" in match[0]:
        return True
    before, after = line[: match.start()], line[match.end() :]
    return bool(CODE_FOLLOWS.match(after) or CODE_PRECEDES.search(before))


def lowered(text: str, counts: Mapping[str, int]) -> str:
    """Return the file of budgets with no budget higher than the area's count."""

    def lower(match: re.Match[str]) -> str:
        return f"{match[1]}{min(int(match[3]), counts[match[2]])}"

    return re.sub(r"(?m)(^\[(\w+)\]\n(?:.+\n)*?budget = )(\d+)$", lower, text)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.vague_names", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("area", nargs="?", choices=tomllib.loads(BUDGETS.read_text()))
    parser.add_argument("--lower", action="store_true", help="lower the budgets to the counts")
    options = parser.parse_args()
    listed = areas()
    if options.area:
        (area,) = (area for area in listed if area.name == options.area)
        counts = Counter({name: len(places) for name, places in area.places.items()})
        for name, count in counts.most_common():
            print(f"{count:5} {name}  {', '.join(area.places[name][:3])}")
        return 0
    if options.lower:
        text = lowered(BUDGETS.read_text(), {area.name: area.count for area in listed})
        BUDGETS.write_text(text)
    for area in listed:
        print(f"{area.name:16}{area.count:6} of {area.budget}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
