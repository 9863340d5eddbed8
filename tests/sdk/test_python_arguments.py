"""A mistake in a call is reported by that call, with what would have been valid."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rillbase import Client

URL = "http://127.0.0.1:9"


@pytest.fixture
def todos() -> Iterator[Any]:
    """A collection, without the types that would catch the mistakes below."""
    with Client(URL, key="rbp_x") as db:
        yield db.collection("todos")


@pytest.mark.parametrize("operator", ["=", "===", "$eq", "not-in", None])
def test_an_unknown_operator_names_the_valid_ones(todos: Any, operator: object) -> None:
    with pytest.raises(ValueError, match="Valid: '==', '!='"):
        todos.where("rank", operator, 1)


def test_arguments_of_a_wrong_type_are_refused(todos: Any) -> None:
    with pytest.raises(TypeError, match="requires a list"):
        todos.where("rank", "in", "abc")
    with pytest.raises(TypeError, match="non-empty string"):
        todos.where("", "==", 1)
    with pytest.raises(TypeError, match="must be a mapping"):
        todos.filter([("rank", 1)])
    with pytest.raises(TypeError, match="whole number"):
        todos.limit("5")
    with pytest.raises(ValueError, match="0 or more"):
        todos.offset(-1)


def test_a_misspelt_option_names_the_valid_ones() -> None:
    mistakes: dict[str, Any] = {"api_key": "rbp_x"}
    with pytest.raises(TypeError, match=r"no option 'api_key'\. Valid: 'key'"):
        Client(URL, **mistakes)
