"""The checks of names, terms and paths detect violations."""

from __future__ import annotations

from scripts import check_names


def test_the_repository_follows_its_rules() -> None:
    assert check_names.main() == 0


def test_a_type_that_two_files_define_is_detected_in_either_language() -> None:
    sources = {
        "foundation/a.py": "class Session: ...\nclass Lease: ...\n",
        "native/live/src/b.rs": "pub(crate) struct Session;\nstruct Other;\n",
        "tenants/management/commands/c.py": "class Command: ...\n",
        "sources/management/commands/d.py": "class Command: ...\n",
    }
    assert check_names.duplicates(check_names.types_of(sources)) == {"Session"}


def test_participles_pronouns_and_adverbs_are_rejected_as_names() -> None:
    assert check_names.bare(["Wanted", "_Told", "WantedGrid", "Lease"]) == {"Wanted", "_Told"}
    files = ["documents/told.py", "tests/told.py", "documents/lease.py", "native/live/src/held.rs"]
    assert check_names.bare_modules(files) == {"documents/told.py", "native/live/src/held.rs"}


def test_an_unused_exception_has_to_be_removed() -> None:
    assert check_names.excess("kind", {"New", "Old"}, ["Old"]) == ["kind: New"]
    (complaint,) = check_names.excess("kind", {"Old"}, ["Old", "Gone"])
    assert "remove Gone" in complaint


def test_the_number_of_exceptions_is_limited() -> None:
    names = [str(number) for number in range(check_names.MAX_ALLOWED)]
    assert check_names.too_many({"types": names}) == []
    (complaint,) = check_names.too_many({"types": names, "others": ["one more"]})
    assert "31 names" in complaint


def test_a_banned_term_of_the_glossary_is_detected_as_a_word() -> None:
    terms = check_names.banned("| term | use instead |\n|---|---|\n| `crowd` | registry |\n")
    assert terms == {"crowd": "registry"}
    texts = {"docs/a.md": "A fine page.\nThe Crowd waits.\n", "docs/b.md": "A crowded page.\n"}
    assert check_names.banned_terms(texts, terms) == [
        "docs/a.md:2: write 'registry' instead of 'crowd'"
    ]


def test_a_path_is_written_from_the_root_and_exists() -> None:
    files = ["foundation/scope.py", "native/live/src/hub/mod.rs"]
    good = "`foundation/`, `foundation/scope.py`, `native/live/src/hub` and `make lint`"
    assert check_names.missing_paths("a.md", good, files) == []
    bad = check_names.missing_paths("a.md", "`scope.py`, `foundation/gone.py`", files)
    assert [complaint.split()[3] for complaint in bad] == ["scope.py", "foundation/gone.py"]
