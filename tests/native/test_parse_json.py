"""The native JSON reader against the standard library's, and where the two are meant to differ."""

from __future__ import annotations

import json
import math
from typing import TypeAlias

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import rillbase_native
from rillbase_native import JsonError, parse_json

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
LARGE = 10**60
VALUES: st.SearchStrategy[Json] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-LARGE, LARGE)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=24) | st.dictionaries(TEXT, inner, max_size=24),
    max_leaves=60,
)


def code(body: bytes) -> str:
    with pytest.raises(JsonError) as raised:
        parse_json(body)
    return raised.value.code


@settings(max_examples=300)
@given(value=VALUES, ascii_only=st.booleans(), indent=st.sampled_from([None, 0, 2]))
def test_what_the_standard_library_writes_reads_the_same(
    *, value: Json, ascii_only: bool, indent: int | None
) -> None:
    body = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode()
    read = parse_json(body)
    assert repr(read) == repr(json.loads(body))


@settings(max_examples=500)
@given(
    st.text("[]{}\",:0123456789.eE+-truefalsn \n\\u\t'/", max_size=30)
    | st.text('[]{}",: 1ab', max_size=14)
)
@example("[1,]")
@example('{"a":1,"a":2}')
def test_what_is_accepted_is_what_the_standard_library_reads(text: str) -> None:
    try:
        read = parse_json(text.encode())
    except JsonError as refusal:
        if refusal.code == "malformed":
            with pytest.raises(json.JSONDecodeError):
                json.loads(text, parse_constant=_refuse)
        return
    expected = json.loads(text)
    assert read == expected


def _refuse(constant: str) -> float:
    raise json.JSONDecodeError("not in the grammar", constant, 0)


def test_an_error_has_code_line_column_offset_and_pointer() -> None:
    with pytest.raises(JsonError, match=r"^expected a value at line 2 column 5$") as raised:
        parse_json('{"é":\n[1, x]}'.encode())
    error = raised.value
    assert (error.code, error.line, error.column, error.offset) == ("malformed", 2, 5, 11)
    assert error.pointer == "/é/1"
    assert isinstance(error, ValueError)


def test_minus_zero_keeps_its_sign() -> None:
    read = parse_json(b"-0")
    assert isinstance(read, float)
    assert math.copysign(1, read) == -1


def test_integers_are_exact_up_to_four_thousand_digits() -> None:
    digits = "9" * 4_000
    assert parse_json(digits.encode()) == int(digits)
    assert parse_json(b"-" + digits[:-1].encode()) == -int(digits[:-1])
    assert code(digits.encode() + b"9") == "number_out_of_range"


def test_booleans_and_null_are_the_singletons() -> None:
    read = parse_json(b"[true, false, null]")
    assert isinstance(read, list)
    assert read[0] is True
    assert read[1] is False
    assert read[2] is None


def test_many_different_keys_all_arrive() -> None:
    expected: dict[str, Json] = {f"key {n}": {"x" * (n % 90): n} for n in range(1, 5_000)}
    assert parse_json(json.dumps(expected).encode()) == expected


def test_limits_are_the_callers() -> None:
    assert parse_json(b"[[1]]", max_depth=2, max_values=3) == [[1]]
    with pytest.raises(JsonError) as raised:
        parse_json(b"[[1]]", max_depth=1)
    assert raised.value.code == "too_deep"
    with pytest.raises(JsonError) as raised:
        parse_json(b"[[1]]", max_values=2)
    assert raised.value.code == "too_many_values"


@pytest.mark.parametrize("wrong", ["[]", bytearray(b"[]"), None, 1])
def test_only_bytes_are_accepted(wrong: object) -> None:
    with pytest.raises(TypeError):
        parse_json(wrong)  # type: ignore[arg-type]


def test_the_module_offers_what_its_stub_declares() -> None:
    public = {name for name in vars(rillbase_native) if not name.startswith("_")}
    assert {"JsonError", "parse_json"} <= public
