"""Executes the operations that clients send."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Mapping
from dataclasses import dataclass
from typing import cast

from graphql import (
    DocumentNode,
    ExecutionResult,
    Executor,
    GraphQLError,
    GraphQLSchema,
    OperationType,
    create_source_event_stream,
    execute,
    execute_subscription_event,
)
from graphql.pyutils import is_awaitable

from foundation.api.rendering import exact_json, to_json
from foundation.errors import FieldProblem, Forbidden, InvalidBody
from foundation.json_types import JsonObject, JsonValue
from rillbase_server.graphql import failures
from rillbase_server.graphql.bounds import BoundedOperation
from rillbase_server.graphql.context import Context
from rillbase_server.graphql.introspection import IntrospectionCache, introspect
from rillbase_server.graphql.plans import Plans
from rillbase_server.graphql.rows import PlanningExecutor

MAX_TEXT_CHARS = 100_000
_MEMBERS = ("query", "variables", "operationName", "extensions")


@dataclass(frozen=True, slots=True)
class GraphqlRequest:
    """A client's request."""

    text: str | None
    variables: dict[str, object]
    name: str | None
    #: The hash by which the client knows the text, from `extensions.persistedQuery`.
    hash: str | None

    @classmethod
    def read(cls, body: object) -> GraphqlRequest:
        """Parse a client's request, or raise `InvalidBody`."""
        if not isinstance(body, dict):
            raise InvalidBody("An operation must be an object; batches are not supported.")
        for member in body:
            if member not in _MEMBERS:
                raise _wrong(member, "Unknown field.", "unknown_field")
        text, variables, name = (body.get(member) for member in _MEMBERS[:3])
        if text is not None and not (isinstance(text, str) and len(text) <= MAX_TEXT_CHARS):
            raise _wrong("query", f"Expected a string of at most {MAX_TEXT_CHARS} characters.")
        if not (variables is None or isinstance(variables, dict)):
            raise _wrong("variables", "Expected an object.")
        if not (name is None or isinstance(name, str)):
            raise _wrong("operationName", "Expected a string.")
        return cls(text, variables or {}, name, _hash(body.get("extensions")))


def _hash(extensions: object) -> str | None:
    if not (extensions is None or isinstance(extensions, dict)):
        raise _wrong("extensions", "Expected an object.")
    persisted = (extensions or {}).get("persistedQuery")
    if persisted is None:
        return None
    digest = persisted.get("sha256Hash") if isinstance(persisted, dict) else None
    if not isinstance(digest, str) or persisted.get("version") != 1:
        raise _wrong("extensions/persistedQuery", "Expected `version` 1 and a `sha256Hash`.")
    return digest


def _wrong(member: str, detail: str, code: str = "invalid") -> InvalidBody:
    return InvalidBody(errors=[FieldProblem(f"/{member}", code, detail)])


@dataclass(frozen=True, slots=True)
class PreparedOperation:
    """An operation that is valid for its schema."""

    schema: GraphQLSchema
    document: DocumentNode
    text: str
    bounded: BoundedOperation
    #: The plans of its objects; None if directives can change the selected fields.
    plans: Plans | None
    introspection: IntrospectionCache

    @property
    def kind(self) -> OperationType:
        return self.bounded.operation.operation

    @property
    def name(self) -> str | None:
        named = self.bounded.operation.name
        return None if named is None else named.value


class OperationRejected(Exception):
    """An invalid operation, with its errors."""

    def __init__(self, errors: list[GraphQLError]) -> None:
        super().__init__(errors[0].message)
        self.errors: list[JsonValue] = [failures.formatted(error) for error in errors]


def _enter(prepared: PreparedOperation, variables: Mapping[str, object], context: Context) -> None:
    """Reject operations that the caller may not run, or that exceed the limits."""
    if prepared.plans is not None:
        context.plans = prepared.plans
    if prepared.bounded.is_introspection and context.principal.control_role is None:
        raise Forbidden("Only members of the tenant may introspect the schema.")
    prepared.bounded.weigh(variables)


async def answer(
    prepared: PreparedOperation, variables: dict[str, object], context: Context
) -> bytes:
    """Run a query or a mutation, and return the response."""
    _enter(prepared, variables, context)
    if prepared.bounded.is_introspection:
        return await _introspect(prepared, variables, context)
    return await context.metered(_execute(prepared, variables, context))


async def _execute(
    prepared: PreparedOperation, variables: dict[str, object], context: Context
) -> bytes:
    result = execute(
        prepared.schema,
        prepared.document,
        context_value=context,
        variable_values=variables,
        operation_name=prepared.name,
        executor_class=PlanningExecutor,
    )
    return to_json(_format(await _resolve(result)))


async def _introspect(
    prepared: PreparedOperation, variables: dict[str, object], context: Context
) -> bytes:
    key = (prepared.text, prepared.name, exact_json(variables))
    response = prepared.introspection.get(key)
    if response is None:
        result = await introspect(
            prepared.schema, prepared.document, prepared.name, variables, context.party
        )
        response = to_json(_format(result))
        if not result.errors:
            prepared.introspection.put(key, response)
    return response


@dataclass(frozen=True, slots=True)
class OperationStream:
    """A subscription that has started."""

    executor: Executor[Context]
    source: AsyncGenerator[object, None]

    async def rendered(self, event: object) -> JsonObject:
        """Return the payload of an event."""
        result = execute_subscription_event(self.executor.build_per_event_executor(event))
        return _format(await _resolve(result))


async def start_subscription(
    prepared: PreparedOperation, variables: dict[str, object], context: Context
) -> OperationStream:
    """Start a subscription, or raise `OperationRejected`."""
    _enter(prepared, variables, context)
    executor = PlanningExecutor.build(
        prepared.schema,
        prepared.document,
        context_value=context,
        raw_variable_values=variables,
        operation_name=prepared.name,
    )
    if isinstance(executor, list):
        raise OperationRejected(executor)
    stream_or_awaitable = create_source_event_stream(executor)
    stream = await stream_or_awaitable if is_awaitable(stream_or_awaitable) else stream_or_awaitable
    if isinstance(stream, ExecutionResult):
        raise OperationRejected(stream.errors or [GraphQLError("The subscription did not start.")])
    return OperationStream(executor, cast("AsyncGenerator[object, None]", stream))


async def _resolve(result: ExecutionResult | Awaitable[ExecutionResult]) -> ExecutionResult:
    """Return a result, after awaiting it if necessary."""
    return result if isinstance(result, ExecutionResult) else await result


def _format(result: ExecutionResult) -> JsonObject:
    """Format a result for the client."""
    rendered: JsonObject = {"data": cast("JsonValue", result.data)}
    if result.errors:
        rendered["errors"] = [failures.formatted(error) for error in result.errors]
    return rendered
