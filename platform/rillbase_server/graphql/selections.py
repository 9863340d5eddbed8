"""What an operation selects below a field.

Some fields can only be resolved if the selection below them is known: the lookups of documents, and
the measures of groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from graphql import (
    FieldNode,
    GraphQLNamedType,
    GraphQLObjectType,
    OperationType,
    get_argument_values,
    get_named_type,
)
from graphql.execution.collect_fields import FieldDetails, FragmentDetails, collect_subfields

from rillbase_server.graphql.context import Resolving

#: Paths of the rows: in a page, and in a subscription's messages.
ROWS = (("nodes",), ("edges", "node"), ("items",), ("node",))


@dataclass(frozen=True, slots=True)
class SelectedField:
    """A selected field, under one alias."""

    name: str
    #: The type of its values, or of the items of its lists.
    type: GraphQLNamedType
    arguments: Mapping[str, object]
    #: The extensions of the field's declaration.
    extensions: Mapping[str, object]
    _nodes: list[FieldNode]
    _info: Resolving

    @classmethod
    def resolved(cls, info: Resolving) -> SelectedField:
        """Return the field that is being resolved."""
        kind = get_named_type(info.return_type)
        return cls(info.field_name, kind, {}, {}, info.field_nodes, info)

    @property
    def is_watched(self) -> bool:
        return self._info.operation.operation is OperationType.SUBSCRIPTION

    def fields(self) -> Iterator[SelectedField]:
        """Yield the fields below, including those of fragments."""
        if not isinstance(self.type, GraphQLObjectType):
            return
        info = self._info
        fragments = {name: FragmentDetails(child) for name, child in info.fragments.items()}
        details = [FieldDetails(node, None) for node in self._nodes]
        subfields = collect_subfields(
            info.schema, fragments, info.variable_values, info.operation, self.type, details
        )
        for selection in subfields.grouped_field_set.values():
            nodes = [child.node for child in selection]
            field = self.type.fields.get(nodes[0].name.value)
            if field is None:  # `__typename`, which every type has
                continue
            arguments = get_argument_values(field, nodes[0], info.variable_values)
            kind = get_named_type(field.type)
            yield SelectedField(
                nodes[0].name.value, kind, arguments, field.extensions or {}, nodes, info
            )

    def at(self, *path: str) -> Iterator[SelectedField]:
        """Yield the fields at a path."""
        if not path:
            yield self
            return
        for child in self.fields():
            if child.name == path[0]:
                yield from child.at(*path[1:])

    def rows(self) -> Iterator[SelectedField]:
        """Yield the fields that show rows."""
        for path in ROWS:
            yield from self.at(*path)
