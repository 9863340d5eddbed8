"""Introspection of a schema. It takes a tenth of a second, and much longer with nested fields, so
it runs in slices, and its responses are cached with the schema.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from graphql import DocumentNode, ExecutionResult, GraphQLSchema, execute
from graphql.execution.executor_throwing_on_incremental import ExecutorThrowingOnIncremental

from foundation.errors import QueryTooExpensive
from foundation.time_slices import Pause, run_in_slices

MAX_FIELDS = 500_000
MAX_CACHED_BYTES = 4 * 1024 * 1024

#: A text, the name of its operation, and its variables as JSON.
IntrospectionKey: TypeAlias = tuple[str, str | None, bytes]


@dataclass(slots=True)
class IntrospectionCache:
    """Responses of one schema; the least recently used are evicted first."""

    _responses: OrderedDict[IntrospectionKey, bytes] = field(default_factory=OrderedDict)
    _size_bytes: int = 0

    def get(self, key: IntrospectionKey) -> bytes | None:
        response = self._responses.get(key)
        if response is not None:
            self._responses.move_to_end(key)
        return response

    def put(self, key: IntrospectionKey, response: bytes) -> None:
        self._size_bytes += len(response) - len(self._responses.pop(key, b""))
        self._responses[key] = response
        while self._size_bytes > MAX_CACHED_BYTES:
            _, evicted = self._responses.popitem(last=False)
            self._size_bytes -= len(evicted)


async def introspect(
    schema: GraphQLSchema,
    document: DocumentNode,
    name: str | None,
    variables: dict[str, object],
    party: Hashable,
) -> ExecutionResult:
    """Run an operation that only introspects. Its time is charged to `party`."""

    def work(pause: Pause) -> ExecutionResult:
        result = execute(
            schema,
            document,
            context_value=_FieldCounter(pause),
            variable_values=variables,
            operation_name=name,
            executor_class=_PausingExecutor,
        )
        if not isinstance(result, ExecutionResult):
            raise TypeError("introspection awaits nothing")
        return result

    try:
        return await run_in_slices(party, work)
    except _TooManyFields:
        raise QueryTooExpensive(
            f"The response would have more than {MAX_FIELDS} values. Nest fewer fields."
        ) from None


class _TooManyFields(BaseException):
    """The limit has been reached. The library would catch an ordinary exception."""


@dataclass(slots=True)
class _FieldCounter:
    pause: Pause
    fields: int = 0

    def count(self) -> None:
        self.fields += 1
        if self.fields > MAX_FIELDS:
            raise _TooManyFields
        self.pause()


class _PausingExecutor(ExecutorThrowingOnIncremental):
    def execute_field(self, *arguments: Any) -> Any:
        """Resolve a field."""
        self.context_value.count()
        return super().execute_field(*arguments)
