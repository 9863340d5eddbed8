"""What operations read and write is JSON, whatever library does it."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from foundation.json_types import JsonValue
from rillbase_server.graphql import text

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
    assert json.loads(text.write(value)) == value


def test_numbers_are_read_as_documents_have_them() -> None:
    written = b'{"most": 9223372036854775807, "least": -9223372036854775808, "one": 1.0}'
    found = text.read(written)
    assert json.dumps(found) == written.decode()
