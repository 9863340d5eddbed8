"""Pages of documents, completed by plans instead of field by field.

A response may have thousands of rows with the same few fields, which only read values. For each of
them, the library's executor repeats the same work: it looks up the field, builds the resolver's
`info`, and checks for awaitables. So a selection whose fields only read values is converted once to
a plan, which completes every object. Such fields have a function in their extensions: `READ` reads
the value; `READ_GIVEN` returns the reader for constant arguments. Plans are cached with the
operation's text, unless directives can change its selection.

A plan yields the same result as the executor. If a value does not match the schema, the executor
completes it again, and reports the error and its location.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from inspect import iscoroutine
from typing import Any

from graphql import (
    FieldNode,
    GraphQLField,
    GraphQLList,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLOutputType,
    ListValueNode,
    ObjectValueNode,
    TypeNameMetaFieldDef,
    ValueNode,
    VariableNode,
    get_argument_values,
    is_leaf_type,
)
from graphql.execution.collect_fields import FieldDetailsList, GroupedFieldSet
from graphql.execution.executor_throwing_on_incremental import ExecutorThrowingOnIncremental
from graphql.pyutils import AwaitableOrValue, Path

from rillbase_server.graphql.context import Context, Resolving
from rillbase_server.graphql.plans import (
    Complete,
    Plans,
    Step,
    leaf,
    list_of,
    object_of,
    unless_null,
)

READ, READ_GIVEN = "read", "read_given"


class PlanningExecutor(ExecutorThrowingOnIncremental):
    """Completes objects by plans where their selections allow it."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        context = self.context_value
        self._plans: Plans = context.plans if isinstance(context, Context) else {}

    def execute_field(self, *arguments: Any, **named: Any) -> AwaitableOrValue[Any]:
        """Resolve and complete a field. The library runs concurrent fields in tasks of their own,
        so each is metered.
        """
        result = super().execute_field(*arguments, **named)
        if iscoroutine(result) and isinstance(self.context_value, Context):
            return self.context_value.metered(result)
        return result

    def complete_iterable_value(
        self,
        item_type: GraphQLOutputType,
        field_details_list: FieldDetailsList,
        info: Resolving,
        path: Path,
        items: Iterable[Any],
        position_context: None,
    ) -> AwaitableOrValue[list[Any]]:
        """Complete the items of a list."""
        item_list = items if isinstance(items, list) else list(items)
        complete = self._of(item_type, field_details_list)
        if complete is not None:
            try:
                return [complete(item) for item in item_list]
            except Exception:  # noqa: BLE001, S110 -- the executor raises it again below
                pass
        return super().complete_iterable_value(
            item_type, field_details_list, info, path, item_list, position_context
        )

    def complete_object_value(
        self,
        return_type: GraphQLObjectType,
        field_details_list: FieldDetailsList,
        info: Resolving,
        path: Path,
        result: Any,
        position_context: None,
    ) -> AwaitableOrValue[dict[str, Any]]:
        """Complete one object."""
        complete = self._row_completion(return_type, field_details_list)
        if complete is not None:
            try:
                return complete(result)  # type: ignore[return-value]
            except Exception:  # noqa: BLE001, S110 -- the executor raises it again below
                pass
        return super().complete_object_value(
            return_type, field_details_list, info, path, result, position_context
        )

    def _of(
        self, output_type: GraphQLOutputType, selection: FieldDetailsList, *, required: bool = False
    ) -> Complete | None:
        """Return the completion of values of a type; None: only the executor can complete them."""
        if isinstance(output_type, GraphQLNonNull):
            return self._of(output_type.of_type, selection, required=True)
        if isinstance(output_type, GraphQLList):
            item = self._of(output_type.of_type, selection)
            return None if item is None else list_of(item, required=required)
        if isinstance(output_type, GraphQLObjectType):
            planned = self._row_completion(output_type, selection)
            return planned if planned is None or required else unless_null(planned)
        return leaf(output_type, required=required) if is_leaf_type(output_type) else None

    def _row_completion(
        self, object_type: GraphQLObjectType, selection: FieldDetailsList
    ) -> Complete | None:
        """Return the completion of objects of a type if all selected fields only read values."""
        # The document lives as long as the plans, so the ids of its nodes remain unique.
        key = (object_type.name, tuple(id(details.node) for details in selection))
        if key not in self._plans:
            grouped, deferred, _ = self.collect_subfields(object_type, selection)
            self._plans[key] = None if deferred else self._plan(object_type, grouped)
        return self._plans[key]

    def _plan(self, object_type: GraphQLObjectType, grouped: GroupedFieldSet) -> Complete | None:
        steps: list[Step] = []
        for shown, selection in grouped.items():
            field = self.schema.get_field(object_type, selection[0].node.name.value)
            if field is TypeNameMetaFieldDef:
                steps.append((shown, lambda _: object_type.name, str))
                continue
            read = None if field is None else _reader(field, selection[0].node)
            complete = None if field is None or read is None else self._of(field.type, selection)
            if read is None or complete is None:
                return None
            steps.append((shown, read, complete))
        return object_of(steps)


def _reader(field: GraphQLField, node: FieldNode) -> Callable[[Any], Any] | None:
    """Return the reader of a field's value; None if resolving it does more than read."""
    declared = field.extensions or {}
    factory = declared.get(READ_GIVEN)
    if factory is None:
        read: Callable[[Any], Any] | None = declared.get(READ)
        return read
    if any(_varies(argument.value) for argument in node.arguments or ()):
        return None
    reader: Callable[[Any], Any] = factory(get_argument_values(field, node))
    return reader


def _varies(value: ValueNode) -> bool:
    if isinstance(value, ListValueNode):
        return any(_varies(item) for item in value.values)
    if isinstance(value, ObjectValueNode):
        return any(_varies(member.value) for member in value.fields)
    return isinstance(value, VariableNode)
