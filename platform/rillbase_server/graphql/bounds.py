"""Limits of one operation: its depth, its aliases, and its total weight.

Depth and aliases are checked when an operation is prepared. The weight depends on variables, so it
is checked each time: a field weighs one, and the fields below a list are multiplied by its maximum
length. So nested lists are rejected before anything is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    InlineFragmentNode,
    IntValueNode,
    ListValueNode,
    OperationDefinitionNode,
    SelectionSetNode,
    VariableNode,
)

from foundation.errors import InvalidOperation, QueryTooExpensive
from rillbase_server.graphql.pages import DEFAULT_FIRST

MAX_TOKENS = 5_000
MAX_DEPTH = 15
MAX_ALIASES = 30
#: Maximum number of root fields, each of which queries a store.
MAX_ROOTS = 50
MAX_WEIGHT = 200_000
#: The assumed length of lists without `first`.
_LISTS: Mapping[str, int] = {"nodes": 1, "edges": 1}
#: The assumed number of references of a document that may have several.
REFERENCES = 10
_INTROSPECTION = frozenset({"__schema", "__type"})
_MANY, _LOOKED_UP = "lookupMany", "lookup"


@dataclass(slots=True)
class _OperationSize:
    depth: int = 0
    aliases: int = 0


@dataclass(frozen=True, slots=True)
class BoundedOperation:
    """An operation within the limits of depth and aliases."""

    operation: OperationDefinitionNode
    fragments: Mapping[str, FragmentDefinitionNode]
    is_introspection: bool

    def weigh(self, variables: Mapping[str, object]) -> None:
        """Raise `QueryTooExpensive` if the weight exceeds the limit."""
        weight = _WeightMeter(self.fragments, variables).weight(self.operation.selection_set)
        if weight > MAX_WEIGHT:
            raise QueryTooExpensive(
                f"The operation may return {weight} values; {MAX_WEIGHT} are allowed. "
                "Ask for fewer with `first`, or for fewer fields."
            )


def bounded(document: DocumentNode, operation: OperationDefinitionNode) -> BoundedOperation:
    """Check the limits of a valid document, or raise `InvalidOperation`."""
    fragments = {
        definition.name.value: definition
        for definition in document.definitions
        if isinstance(definition, FragmentDefinitionNode)
    }
    meter = _SizeMeter(fragments)
    size = meter.measure(operation.selection_set)
    if size.depth > MAX_DEPTH:
        raise InvalidOperation(f"Fields are nested {size.depth} deep; {MAX_DEPTH} are allowed.")
    if size.aliases > MAX_ALIASES:
        raise InvalidOperation(f"There are {size.aliases} aliases; {MAX_ALIASES} are allowed.")
    roots = [node.name.value for node in meter.fields(operation.selection_set)]
    if len(roots) > MAX_ROOTS:
        raise InvalidOperation(f"There are {len(roots)} fields; {MAX_ROOTS} are allowed.")
    is_introspection = not _INTROSPECTION.isdisjoint(roots)
    if is_introspection and not set(roots) <= {*_INTROSPECTION, "__typename"}:
        raise InvalidOperation("Introspect the schema in an operation without other fields.")
    return BoundedOperation(operation, fragments, is_introspection)


@dataclass(slots=True)
class _SizeMeter:
    """Measures selections, each fragment once."""

    fragments: Mapping[str, FragmentDefinitionNode]
    _known: dict[str, _OperationSize] = field(default_factory=dict)

    def measure(self, selections: SelectionSetNode | None) -> _OperationSize:
        size = _OperationSize()
        for node in selections.selections if selections is not None else ():
            if isinstance(node, FieldNode):
                below = self.measure(node.selection_set)
                below.depth += 1
                below.aliases += node.alias is not None
            elif isinstance(node, InlineFragmentNode):
                below = self.measure(node.selection_set)
            elif isinstance(node, FragmentSpreadNode):
                below = self._fragment(node.name.value)
            else:
                continue
            size.depth = max(size.depth, below.depth)
            size.aliases += below.aliases
        return size

    def _fragment(self, name: str) -> _OperationSize:
        if name not in self._known:
            self._known[name] = self.measure(self.fragments[name].selection_set)
        return self._known[name]

    def fields(self, selections: SelectionSetNode) -> list[FieldNode]:
        """Return the fields of a selection, including those of its fragments."""
        nodes: list[FieldNode] = []
        for node in selections.selections:
            if isinstance(node, FieldNode):
                nodes.append(node)
            elif isinstance(node, InlineFragmentNode):
                nodes += self.fields(node.selection_set)
            elif isinstance(node, FragmentSpreadNode) and len(nodes) <= MAX_ROOTS:
                nodes += self.fields(self.fragments[node.name.value].selection_set)
        return nodes


@dataclass(slots=True)
class _WeightMeter:
    """Weighs selections, each fragment once."""

    fragments: Mapping[str, FragmentDefinitionNode]
    variables: Mapping[str, object]
    _known: dict[str, int] = field(default_factory=dict)

    def weight(self, selections: SelectionSetNode | None) -> int:
        total = 0
        for node in selections.selections if selections is not None else ():
            if isinstance(node, FieldNode):
                below = self.weight(node.selection_set) + self._looked_up(node)
                total += 1 + self._times(node) * below
            elif isinstance(node, InlineFragmentNode):
                total += self.weight(node.selection_set)
            elif isinstance(node, FragmentSpreadNode):
                total += self._fragment(node.name.value)
        return total

    def _fragment(self, name: str) -> int:
        if name not in self._known:
            self._known[name] = self.weight(self.fragments[name].selection_set)
        return self._known[name]

    def _times(self, node: FieldNode) -> int:
        """Return how often the selection below a field may occur."""
        if node.selection_set is None or node.name.value in _LISTS:
            return 1
        if node.name.value == _MANY:
            return REFERENCES
        for argument in node.arguments or ():
            if argument.name.value == "first":
                return self._number(argument.value)
        has_pages = any(
            isinstance(below, FieldNode) and below.name.value in _LISTS
            for below in node.selection_set.selections
        )
        return DEFAULT_FIRST if has_pages else 1

    def _looked_up(self, node: FieldNode) -> int:
        """Return how many values of referenced documents a row has."""
        for argument in node.arguments or ():
            if argument.name.value == _LOOKED_UP:
                return REFERENCES * self._length(argument.value)
        return 0

    def _length(self, value: object) -> int:
        if isinstance(value, ListValueNode):
            return len(value.values)
        if isinstance(value, VariableNode):
            variable = self.variables.get(value.name.value)
            return len(variable) if isinstance(variable, list) else 0
        return 0

    def _number(self, value: object) -> int:
        if isinstance(value, IntValueNode):
            return max(int(value.value), 1)
        if isinstance(value, VariableNode):
            variable = self.variables.get(value.name.value)
            return max(variable, 1) if isinstance(variable, int) else DEFAULT_FIRST
        return 1
