"""Vague names are found in every language, and their number only falls."""

from __future__ import annotations

import pytest

from scripts import vague_names
from scripts.vague_names import Area


def names(file: str, text: str) -> str:
    return " ".join(name for _, name in vague_names.vague_names(file, text))


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("from told import asked as wanted", "told asked wanted"),
        ("class Heard(taken.Lease): held: int = 0  # kept", "Heard taken held"),
        ("async def judge(guilty, *, stranger=1): global said", "judge guilty stranger said"),
        ("call(greeted=f'{wished}', plain='told')", "greeted wished"),
        ("match a:\n case P(somebody=x, came=y) as seen: pass", "seen somebody came"),
        ("try: pass\nexcept E as things: 'kept'", "things"),
    ],
)
def test_names_of_python_count_wherever_they_are(code: str, expected: str) -> None:
    assert sorted(names("a.py", code).split()) == sorted(expected.split())


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("struct Heard<'kept> { held: &'kept str } // told", "Heard kept held kept"),
        ("/* asked\n told */ fn judge(guilty: char) {}", "judge guilty"),
        ("guilty == 'k' || '\\'' != seen", "guilty seen"),
        ('r#"told "#.is_empty(); "told \\" asked"', ""),
        ("let unknown = deadline.not_found();", ""),
    ],
)
def test_names_of_rust_count_outside_comments_and_strings(code: str, expected: str) -> None:
    assert names("a.rs", code) == expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("const told = `asked ${known} said ${f(`${wanted}`)}`;", "told known wanted"),
        ("type Held = { kept: string }; // told", "Held kept"),
        ("function judge(x) { return x.keep }", "judge keep"),
        ('<p title="told">What you wanted since it came</p>', ""),
    ],
)
def test_sentences_in_markup_are_not_names(code: str, expected: str) -> None:
    assert names("a.tsx", code) == expected


def test_names_of_lua_count_outside_comments_and_strings() -> None:
    assert names("a.lua", "-- told\nlocal held = f('told', \"asked\") .. seen") == "held seen"


def test_a_place_is_a_line() -> None:
    assert list(vague_names.vague_names("a.rs", '/*\n*/ "\n" \nheld')) == [(4, "held")]


def test_files_without_code_have_no_names() -> None:
    assert names("a.md", "told = asked") == ""


@pytest.mark.parametrize(
    "name", ["deadline", "keepAlive", "ends_with", "FileNotFoundError", "is_alive", "Lifetime"]
)
def test_terms_of_the_trade_are_not_vague(name: str) -> None:
    assert not vague_names.is_vague(name)


def test_a_budget_is_the_number_of_names() -> None:
    area = Area("documents", ("documents/",), 2)
    area.places["held"] += ["documents/a.py:1", "documents/a.py:2"]
    assert list(vague_names.complaints([area])) == []
    area.places["told"].append("documents/a.py:3")
    (complaint,) = vague_names.complaints([area])
    assert complaint.startswith("documents: 3 vague names, 2 allowed; they are listed by ")
    area.places.clear()
    (complaint,) = vague_names.complaints([area])
    assert complaint.endswith("lower it by `python -m scripts.vague_names --lower`")


def test_budgets_are_lowered_and_never_raised() -> None:
    text = '# Kept.\n[a]\nfolders = ["a"]\nbudget = 7\n\n[b]\nfolders = ["b"]\nbudget = 2\n'
    lowered = text.replace("7", "5")
    assert vague_names.lowered(text, {"a": 5, "b": 9}) == lowered
