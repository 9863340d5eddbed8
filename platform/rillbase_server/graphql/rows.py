"""Pages of documents, completed by plans instead of field by field.

An answer may have thousands of rows, and of each the same few fields, which do nothing but read.
For those the library's executor does over and over what comes out the same: it looks a field up,
builds what resolvers are told, asks whether something has to be awaited. So a selection whose
fields only read is made a plan once an operation, and every object is completed by it. Fields
that only read say so: `READ` in their extensions is the function that reads.

A plan only ever takes a shorter way to the same answer. Whatever it meets that is not as the
schema has it, it leaves to the executor, which reads it again and says what is wrong and where.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from graphql import (
    GraphQLList,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLOutputType,
    TypeNameMetaFieldDef,
    is_leaf_type,
)
from graphql.execution.collect_fields import FieldDetailsList, GroupedFieldSet
from graphql.execution.executor_throwing_on_incremental import ExecutorThrowingOnIncremental
from graphql.pyutils import AwaitableOrValue, Path

from rillbase_server.graphql.context import Resolving

READ = "read"

#: Takes a value as it was read and returns it as an answer has it, or raises.
Complete: TypeAlias = Callable[[Any], object]


class NotAsDeclared(Exception):
    """A value that the executor has to look at."""


class PlanningExecutor(ExecutorThrowingOnIncremental):
    """Completes objects by plans where their selections allow it."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        #: By type and selection, which is kept so that its id stays its own.
        self._plans: dict[tuple[str, int], tuple[FieldDetailsList, Complete | None]] = {}

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
        kept = items if isinstance(items, list) else list(items)
        complete = self._of(item_type, field_details_list)
        if complete is not None:
            try:
                return [complete(item) for item in kept]
            except Exception:  # noqa: BLE001, S110 -- whatever it is, it is met again below
                pass
        return super().complete_iterable_value(
            item_type, field_details_list, info, path, kept, position_context
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
        complete = self._planned(return_type, field_details_list)
        if complete is not None:
            try:
                return complete(result)  # type: ignore[return-value]
            except Exception:  # noqa: BLE001, S110 -- whatever it is, it is met again below
                pass
        return super().complete_object_value(
            return_type, field_details_list, info, path, result, position_context
        )

    def _of(self, wanted: GraphQLOutputType, selection: FieldDetailsList) -> Complete | None:
        """Return how values of a type are completed; None: by the executor alone."""
        if isinstance(wanted, GraphQLNonNull):
            inner = self._of(wanted.of_type, selection)
            return None if inner is None else _required(inner)
        if isinstance(wanted, GraphQLList):
            item = self._of(wanted.of_type, selection)
            return None if item is None else _list_of(item)
        if isinstance(wanted, GraphQLObjectType):
            planned = self._planned(wanted, selection)
            return None if planned is None else _unless_null(planned)
        return _unless_null(_leaf(wanted)) if is_leaf_type(wanted) else None

    def _planned(self, wanted: GraphQLObjectType, selection: FieldDetailsList) -> Complete | None:
        """Return how objects of a type are completed, where all that is asked of them is read."""
        key = (wanted.name, id(selection))
        known = self._plans.get(key)
        if known is None:
            grouped, deferred, _ = self.collect_subfields(wanted, selection)
            plan = None if deferred else self._plan(wanted, grouped)
            known = self._plans[key] = (selection, plan)
        return known[1]

    def _plan(self, wanted: GraphQLObjectType, grouped: GroupedFieldSet) -> Complete | None:
        steps: list[tuple[str, Callable[[Any], Any], Complete]] = []
        for shown, selection in grouped.items():
            field = self.schema.get_field(wanted, selection[0].node.name.value)
            if field is TypeNameMetaFieldDef:
                steps.append((shown, lambda _: wanted.name, str))
                continue
            read = None if field is None else (field.extensions or {}).get(READ)
            complete = None if field is None or read is None else self._of(field.type, selection)
            if read is None or complete is None:
                return None
            steps.append((shown, read, complete))
        return lambda source: {shown: complete(read(source)) for shown, read, complete in steps}


def _required(complete: Complete) -> Complete:
    def completed(value: Any) -> object:
        if value is None:
            raise NotAsDeclared
        return complete(value)

    return completed


def _unless_null(complete: Complete) -> Complete:
    return lambda value: None if value is None else complete(value)


def _list_of(complete: Complete) -> Complete:
    def completed(value: Any) -> object:
        if value is None:
            return None
        if not isinstance(value, list):
            raise NotAsDeclared
        return [complete(item) for item in value]

    return completed


def _leaf(wanted: Any) -> Complete:
    coerce = wanted.coerce_output_value

    def completed(value: Any) -> object:
        found = coerce(value)
        if found is None:
            raise NotAsDeclared
        return found

    return completed
