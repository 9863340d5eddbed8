"""The form of keys."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foundation.errors import MalformedKey
from tenants import keys

#: Minted once, since the generated examples depend on it.
TEXT = keys.mint(keys.Prefix.SECRET).text


@given(st.sampled_from(list(keys.Prefix)))
def test_a_minted_key_parses(prefix: keys.Prefix) -> None:
    key = keys.mint(prefix)
    assert keys.parse(key.text) == key


@given(st.data())
def test_any_mistyped_character_is_noticed(data: st.DataObject) -> None:
    position = data.draw(st.integers(0, len(TEXT) - 1))
    typed = data.draw(st.sampled_from(keys.ALPHABET + "_- é").filter(lambda c: c != TEXT[position]))
    with pytest.raises(MalformedKey):
        keys.parse(TEXT[:position] + typed + TEXT[position + 1 :])


@given(st.data())
def test_swapped_neighbours_are_noticed(data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(TEXT) - 2).filter(lambda i: TEXT[i] != TEXT[i + 1]))
    with pytest.raises(MalformedKey):
        keys.parse(TEXT[:at] + TEXT[at + 1] + TEXT[at] + TEXT[at + 2 :])


@given(st.text(max_size=200))
def test_no_text_crashes_the_parser(text: str) -> None:
    with pytest.raises(MalformedKey):
        keys.parse(text)


def test_a_key_does_not_show_its_secret_when_printed() -> None:
    key = keys.mint(keys.Prefix.SECRET)
    assert key.text[30:] not in repr(key)


def test_the_stored_hash_is_not_the_key_and_matches_only_it() -> None:
    first, second = keys.mint(keys.Prefix.SECRET), keys.mint(keys.Prefix.SECRET)
    kept = keys.stored_hash(first.text)
    assert first.text.encode() not in kept
    assert keys.matches(first.text, kept)
    assert not keys.matches(second.text, kept)
