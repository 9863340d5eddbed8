"""The errors for bodies that are not JSON."""

from __future__ import annotations

import pytest

from foundation.errors import MalformedJson
from foundation.json_body import MAX_DEPTH, MAX_VALUES, parse_json_body


def refusal(body: bytes) -> MalformedJson:
    with pytest.raises(MalformedJson) as raised:
        parse_json_body(body)
    return raised.value


def test_a_valid_body_is_its_value() -> None:
    body = '{"name": "Grüße", "tags": [1, 2.5, null, true]}'.encode()
    assert parse_json_body(body) == {"name": "Grüße", "tags": [1, 2.5, None, True]}


def test_a_refused_body_is_a_400_that_names_line_and_column() -> None:
    problem = refusal(b'{\n  "name": nope\n}').problem()
    assert problem["status"] == 400
    assert problem["code"] == "malformed_json"
    assert problem["detail"] == (
        "The body is not valid JSON: expected a value at line 2 column 11."
    )


@pytest.mark.parametrize(
    ("body", "pointer", "code"),
    [
        (b"", "", "malformed"),
        (b'{"a": [1, 2,]}', "/a/2", "malformed"),
        (b'{"a": {"b": "\\ud800"}}', "/a/b", "lone_surrogate"),
        (b'{"a/b": "x\\u0000"}', "/a~1b", "nul_in_string"),
        (b'[{"id": 1, "id": 2}]', "/0/id", "duplicate_key"),
        (b'{"a": "\xff"}', "/a", "bad_utf8"),
        (b"\xef\xbb\xbf{}", "", "byte_order_mark"),
        (b'{"n": 1e999}', "/n", "number_out_of_range"),
        (b'{"n": NaN}', "/n", "malformed"),
    ],
)
def test_each_reason_has_a_stable_code_and_a_pointer(body: bytes, pointer: str, code: str) -> None:
    (problem,) = refusal(body).errors
    assert (problem.pointer, problem.code) == (pointer, code)


def test_the_deepest_allowed_nesting_is_read_and_one_more_level_refused() -> None:
    value = parse_json_body(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH)
    depth = 0
    while isinstance(value, list):
        depth += 1
        value = value[0] if value else None
    assert depth == MAX_DEPTH
    (problem,) = refusal(b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1)).errors
    assert problem.code == "too_deep"


def test_a_body_of_countless_tiny_values_is_refused() -> None:
    (problem,) = refusal(b"[" + b"1," * MAX_VALUES + b"1]").errors
    assert problem.code == "too_many_values"


def test_the_refusal_does_not_hold_the_body() -> None:
    problem = refusal(b'{"password": "hunter2", oops').problem()
    assert "hunter2" not in str(problem)
