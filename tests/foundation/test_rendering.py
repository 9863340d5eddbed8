"""Responses are JSON, whatever library writes it."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foundation.api.rendering import exact_json, to_json
from foundation.errors import MalformedJson
from foundation.json_body import parse_json_body
from foundation.json_types import JsonValue

leaf = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"])),
)
values = st.recursive(
    leaf, lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text("aé\n"), inner))
)


@given(values)
def test_written_values_are_read_unchanged(value: JsonValue) -> None:
    assert json.loads(to_json(value)) == value


def test_times_have_milliseconds_and_ids_their_usual_form() -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, 6007, timezone(timedelta(hours=2)))
    assert to_json({"at": moment, "id": UUID(int=1)}) == (
        b'{"at":"2026-01-02T01:04:05.006Z","id":"00000000-0000-0000-0000-000000000001"}'
    )


def test_other_types_are_an_error() -> None:
    with pytest.raises(TypeError):
        to_json({"value": object()})


def test_a_clients_infinite_number_does_not_become_null() -> None:
    with pytest.raises(MalformedJson):
        parse_json_body(exact_json({"value": float("inf")}))
