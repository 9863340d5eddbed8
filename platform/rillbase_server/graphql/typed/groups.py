"""One row for all documents with the same values, in a collection's own types.

    todosGroups(by: [owner]) { nodes { values { owner } count sum { rank } } }

The measures are those that are selected or sorted by. In the query, they have names such as
`sum:rank`, which documents are unlikely to use.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import cast

from graphql import (
    GraphQLArgument,
    GraphQLEnumType,
    GraphQLField,
    GraphQLFloat,
    GraphQLInt,
    GraphQLList,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLOutputType,
    GraphQLSchema,
    GraphQLString,
)

from foundation.errors import FieldProblem, InvalidGroup
from foundation.json_types import JsonObject, JsonValue
from rillbase_server.graphql import groups, live, pages
from rillbase_server.graphql.context import Resolving
from rillbase_server.graphql.groups import DocumentGroup, DocumentGroupConnection, LiveGroups
from rillbase_server.graphql.rows import READ
from rillbase_server.graphql.selections import SelectedField
from rillbase_server.graphql.typed.filters import ORDERED, as_filter, leaves, sort_input
from rillbase_server.graphql.typed.shapes import RecordShape, ScalarKind
from rillbase_server.graphql.typed.typed_collection import (
    PAGES,
    WATCHED,
    Fields,
    TypedCollection,
    many,
)
from rillbase_server.graphql.typed.types import Readable
from rillbase_server.graphql.typed.values import LONG, SCALARS

_NUMBERS = frozenset({ScalarKind.INT, ScalarKind.LONG, ScalarKind.FLOAT, ScalarKind.DECIMAL})
_MEASURES = {"sum": _NUMBERS, "avg": _NUMBERS, "min": ORDERED, "max": ORDERED}

Read = Callable[[DocumentGroup], object]


@dataclass(frozen=True, slots=True)
class GroupMeasure:
    """An operation over a path of the documents of a group."""

    operation: str
    path: str | None = None

    @property
    def name(self) -> str:
        """Its name in a row. Names have no dots."""
        return f"{self.operation}:{(self.path or '').replace('.', '/')}"

    @property
    def body(self) -> JsonObject:
        """Its form in the REST API."""
        field: JsonObject = {} if self.path is None else {"field": self.path}
        return {"op": self.operation, **field}

    def read(self, row: DocumentGroup) -> JsonValue:
        """Read it from a row."""
        return cast("JsonObject", row.document)[self.name]


COUNT = GroupMeasure("count")


class GroupFields:
    """Creates the fields for groups of one collection."""

    def __init__(
        self,
        declared: TypedCollection,
        static: GraphQLSchema,
        content: Readable,
        by: GraphQLEnumType,
        where: GraphQLArgument,
    ) -> None:
        self._declared = declared
        self._static = static
        #: The measures by the field of their kind, and the field below it.
        self._measures = {kind: dict(_measures(declared.shape, kind)) for kind in _MEASURES}
        self._node = self._row(content)
        sort = sort_input(f"{declared.type}Group", self._sorts(by))
        self._arguments = {
            "by": GraphQLArgument(
                GraphQLNonNull(GraphQLList(GraphQLNonNull(by))),
                default_value=[],
                description="Fields to group by. Documents with equal values form a row.",
            ),
            "filter": where,
            "sort": GraphQLArgument(GraphQLList(GraphQLNonNull(sort))),
        }

    def _row(self, content: Readable) -> GraphQLObjectType:
        general = cast("GraphQLObjectType", self._static.type_map["DocumentGroup"])
        row_fields: Fields = {
            "key": general.fields["key"],
            "values": _reading(
                content, attrgetter("document"), "The values that the group's documents share."
            ),
            "count": _reading(
                GraphQLInt, _unless_empty(COUNT.read), "Number of documents in the group."
            ),
        }
        for kind, measures in self._measures.items():
            if measures:
                fields = {field: shown for field, (_, shown) in measures.items()}
                named = GraphQLObjectType(f"{self._declared.type}{kind.capitalize()}", fields)
                row_fields[kind] = _reading(named, _unless_empty(lambda row: row))
        return GraphQLObjectType(
            f"{self._declared.type}Group", row_fields, description=general.description
        )

    def _sorts(self, by: GraphQLEnumType) -> GraphQLEnumType:
        """Return the sort inputs: grouping values and measures."""
        values: dict[str, str | GroupMeasure] = {
            name: value.value for name, value in by.values.items()
        }
        measures = [("count", COUNT)]
        measures += [
            (f"{kind}_{field}", measured)
            for kind, fields in self._measures.items()
            for field, (measured, _) in fields.items()
        ]
        for title, measured in measures:
            while title in values:
                title += "_"  # noqa: PLW2901 -- until the name is unique
            values[title] = measured
        return GraphQLEnumType(f"{self._declared.type}GroupSortField", values)

    def queries(self) -> Fields:
        """Return the query field."""
        general = cast("GraphQLObjectType", self._static.type_map["DocumentGroupConnection"])
        name = self._declared.type
        edge = GraphQLObjectType(
            f"{name}GroupEdge",
            {
                "cursor": GraphQLField(GraphQLNonNull(GraphQLString)),
                "node": GraphQLField(GraphQLNonNull(self._node)),
            },
        )
        connection = GraphQLObjectType(
            f"{name}GroupConnection",
            {
                "nodes": GraphQLField(many(self._node), resolve=general.fields["nodes"].resolve),
                "edges": GraphQLField(many(edge), resolve=general.fields["edges"].resolve),
                "pageInfo": general.fields["pageInfo"],
                "notices": general.fields["notices"],
            },
        )
        field = GraphQLField(
            GraphQLNonNull(connection),
            {**self._arguments, **PAGES},
            resolve=self._read,
            description=f"Documents of {self._declared.collection} in groups, page by page.",
        )
        return {f"{self._declared.field}Groups": field}

    async def _read(
        self,
        _: object,
        info: Resolving,
        *,
        first: int | None = None,
        after: str | None = None,
        **arguments: object,
    ) -> DocumentGroupConnection:
        query = self._query(arguments, info)
        rows = await pages.read_groups(info.context, self._declared.collection, query, first, after)
        return DocumentGroupConnection(rows=rows)

    def subscriptions(self) -> Fields:
        """Return the subscription field."""
        general = cast("GraphQLObjectType", self._static.type_map["LiveGroups"])
        typed = {
            **general.fields,
            "items": GraphQLField(GraphQLList(GraphQLNonNull(self._node))),
            "node": GraphQLField(self._node),
        }
        watched = cast("GraphQLObjectType", self._static.subscription_type)
        arguments = watched.fields["groups"].args
        field = GraphQLField(
            GraphQLNonNull(GraphQLObjectType(f"{self._declared.type}GroupLive", typed)),
            {**self._arguments, **{name: arguments[name] for name in WATCHED}},
            subscribe=self._watch,
            resolve=lambda event, _info, **_: event,
            description=f"Groups of documents of {self._declared.collection}, and their changes.",
        )
        return {f"{self._declared.field}Groups": field}

    async def _watch(
        self, _: object, info: Resolving, **arguments: object
    ) -> AsyncGenerator[LiveGroups, None]:
        message = live.message(self._declared.collection, self._query(arguments, info), arguments)
        async for frame in live.frames(info.context, message):
            yield groups.payload(frame)

    def _query(self, arguments: Mapping[str, object], info: Resolving) -> JsonObject:
        """Return the members of the REST call and of `subscribe`."""
        by = cast("list[str]", arguments["by"])
        sort = cast("list[Mapping[str, object]] | None", arguments.get("sort"))
        measures = dict.fromkeys(self._measures_of(SelectedField.resolved(info), by))
        keys: list[JsonValue] = []
        for key in sort or ():
            field = key["by"]
            if isinstance(field, GroupMeasure):
                measures[field] = None
                field = field.name
            keys.append([cast("str", field), cast("int", key["direction"])])
        condition = cast("Mapping[str, object] | None", arguments.get("filter"))
        return {
            "filter": as_filter(self._declared.shape, condition),
            "sort": None if sort is None else keys,
            "group": {
                "by": cast("list[JsonValue]", by),
                "measures": {
                    measure.name: measure.body
                    for measure in sorted(measures, key=attrgetter("name"))
                },
            },
        }

    def _measures_of(self, selected_field: SelectedField, by: list[str]) -> Iterator[GroupMeasure]:
        """Yield the measures; raise if a selected value is not a grouping field."""
        for row in selected_field.rows():
            for field in row.fields():
                if field.name == "values":
                    _check(field, self._declared.shape, "", by)
                elif field.name == "count":
                    yield COUNT
                else:
                    below = self._measures.get(field.name, {})
                    yield from (below[child.name][0] for child in field.fields())


def _check(selected: SelectedField, shape: RecordShape, path: str, by: list[str]) -> None:
    """Reject values that are not grouping fields."""
    members = {member.field: member for member in shape.members}
    for child in selected.fields():
        member = members[child.name]
        here = path + member.name
        if isinstance(member.shape, RecordShape):
            _check(child, member.shape, f"{here}.", by)
        elif here not in by:
            detail = f"`{child.name}` is selected but is not a grouping field."
            raise InvalidGroup(errors=[FieldProblem("/by", "invalid_group", detail)])


def _measures(
    shape: RecordShape, kind: str
) -> Iterator[tuple[str, tuple[GroupMeasure, GraphQLField]]]:
    """Yield the fields of the measures of a kind."""
    seen: set[str] = set()
    for title, path, leaf in leaves(shape):
        if isinstance(leaf, ScalarKind) and leaf in _MEASURES[kind] and title not in seen:
            seen.add(title)
            measured = GroupMeasure(kind, path)
            yield title, (measured, _reading(_type(kind, leaf), _measure_reader(measured, leaf)))


def _type(kind: str, leaf: ScalarKind) -> GraphQLOutputType:
    """Return the type of a measure of a field."""
    if leaf in (ScalarKind.INT, ScalarKind.LONG) and kind in ("sum", "avg"):
        return LONG if kind == "sum" else GraphQLFloat
    return SCALARS[leaf]


def _measure_reader(measured: GroupMeasure, leaf: ScalarKind) -> Read:
    """Return the reader of a measure. A sum of no numbers is zero of any type."""
    if leaf is not ScalarKind.DECIMAL:
        return measured.read

    def decimal(row: DocumentGroup) -> JsonValue:
        measure = measured.read(row)
        return {"$numberDecimal": str(measure)} if isinstance(measure, int) else measure

    return decimal


def _unless_empty(read: Read) -> Read:
    """Make a reader return None for rows without documents."""
    return lambda row: None if row.document is None else read(row)


def _reading(kind: GraphQLOutputType, read: Read, description: str | None = None) -> GraphQLField:
    return GraphQLField(
        kind,
        resolve=lambda source, _: read(source),
        description=description,
        extensions={READ: read},
    )
