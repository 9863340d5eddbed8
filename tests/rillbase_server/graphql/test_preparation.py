"""Reading and validating the texts of operations: their cost is bounded, and paid once."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from graphql import get_introspection_query

from foundation.errors import ApiError, InvalidOperation

if TYPE_CHECKING:
    from rillbase_server.graphql.operation_cache import OperationCache

FIELD = 'documents(collection: "c") { nodes { id } }'


@pytest.fixture
def cache() -> OperationCache:
    """The schema without collections, and an empty cache."""
    from rillbase_server.graphql.assembly import without_collections
    from rillbase_server.graphql.operation_cache import OperationCache

    return OperationCache(without_collections().schema)


@pytest.fixture
def computations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of what was computed."""
    from rillbase_server.graphql import introspection, operation_cache

    computed: list[str] = []
    for module in (introspection, operation_cache):
        run = module.run_in_slices

        async def counted(party: object, work: object, *, run=run, module=module) -> object:  # type: ignore[no-untyped-def]  # noqa: ANN001
            computed.append(module.__name__.rpartition(".")[2])
            return await run(party, work)

        monkeypatch.setattr(module, "run_in_slices", counted)
    return computed


async def test_a_valid_text_is_prepared_once(
    cache: OperationCache, computations: list[str]
) -> None:
    for _ in range(3):
        await cache.prepare(f"{{ {FIELD} }}", None, uuid4())
    assert computations == ["operation_cache"]


async def test_an_invalid_text_is_rejected_alike_each_time(
    cache: OperationCache, computations: list[str]
) -> None:
    from rillbase_server.graphql.operations import OperationRejected

    errors = []
    for _ in range(3):
        with pytest.raises(OperationRejected) as rejected:
            await cache.prepare("{\n  nothing }", None, uuid4())
        errors.append(rejected.value.errors)
    assert computations == ["operation_cache"]
    first = errors[0][0]
    assert isinstance(first, dict)
    assert first["locations"] == [{"line": 2, "column": 3}]
    assert errors[0] == errors[1] == errors[2]


@pytest.mark.parametrize(
    "text",
    [
        "{" + FIELD * 300 + "}",
        "{ ...a } fragment a on Query {" + FIELD * 300 + "}",
        "{"
        + "".join(f"...f{number} " for number in range(100))
        + "}"
        + "".join(f"fragment f{number} on Query {{ {FIELD} }}" for number in range(100)),
    ],
)
async def test_fields_that_are_merged_too_often_are_rejected_before_they_are_compared(
    cache: OperationCache, text: str
) -> None:
    began_s = time.process_time()
    with pytest.raises(InvalidOperation, match="same name"):
        await cache.prepare(text, None, uuid4())
    assert time.process_time() - began_s < 1


async def test_fragments_that_multiply_each_other_are_rejected(cache: OperationCache) -> None:
    levels = 14

    def twice(level: int) -> str:
        spread = f"nodes {{ ...f{level + 1} }}"
        return f"fragment f{level} on Page {{ a: {spread} b: {spread} }}"

    bomb = "".join(twice(level) for level in range(levels))
    text = f"{{ ...f0 }} {bomb} fragment f{levels} on Page {{ id }}"
    with pytest.raises(InvalidOperation, match="too many fields"):
        await cache.prepare(text, None, uuid4())


async def test_a_repeated_field_is_accepted(cache: OperationCache) -> None:
    await cache.prepare("{" + FIELD * 20 + "}", None, uuid4())


async def test_a_fragment_cycle_is_rejected(cache: OperationCache) -> None:
    first = 'fragment a on Query { documents(collection: "c") { ...b } }'
    text = "{ ...a }" + first + "fragment b on Page { nodes { ...b } }"
    with pytest.raises(ApiError, match="deep"):
        await cache.prepare(text, None, uuid4())


async def test_introspection_is_an_operation_of_its_own(cache: OperationCache) -> None:
    with pytest.raises(InvalidOperation, match="without other fields"):
        await cache.prepare("{ __schema { description } " + FIELD + " }", None, uuid4())
    await cache.prepare("{ __typename __schema { description } }", None, uuid4())
    await cache.prepare(get_introspection_query(), None, uuid4())
