"""Lookups: referenced documents as fields of the referring ones.

    todos { nodes { document { title } lookupOne(local: owner) { users { document { name } } } } }

Selections below the rows of a page or a subscription become the `lookup` of its query: both sides
are from one snapshot, and a subscription follows changes of both. For documents from single reads,
writes and lookups, referenced documents are queried when they are selected.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias, cast

from graphql import (
    GraphQLArgument,
    GraphQLEnumType,
    GraphQLError,
    GraphQLField,
    GraphQLList,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLString,
)

from foundation.errors import NotLive
from foundation.json_types import JsonObject, JsonValue
from rillbase_server.graphql.context import FieldLookup, Resolving, reference
from rillbase_server.graphql.documents import AnyDocument, row
from rillbase_server.graphql.plans import NotAsDeclared
from rillbase_server.graphql.rows import READ, READ_GIVEN
from rillbase_server.graphql.selections import SelectedField
from rillbase_server.graphql.typed.shapes import ListOf, RecordShape, ScalarKind, Shape

#: One document, several, or none.
LookedUp: TypeAlias = "AnyDocument | list[AnyDocument] | None"

ONE, MANY = "lookupOne", "lookupMany"
#: The extension with the collection whose documents a field shows.
_COLLECTION = "collection"
_ANY_COLLECTION = {"collection": GraphQLArgument(GraphQLNonNull(GraphQLString))}


@dataclass(frozen=True, slots=True)
class LookupSource:
    """A document and the field that refers to other documents."""

    document: AnyDocument
    local: str
    many: bool

    def included(self, collection: str) -> LookedUp:
        """Return the included documents; raise `KeyError` if they were not requested."""
        if self.document.document is None:
            return None
        content = cast("JsonObject", self.document.document)
        return self._rows_of(collection, content[FieldLookup(collection, self.local).name])

    async def load(self, info: Resolving, collection: str) -> LookedUp:
        """Query the referenced documents."""
        source = reference(self.document.collection, self.document.key)
        documents = await info.context.lookups.load((source, FieldLookup(collection, self.local)))
        return self._rows_of(collection, documents)

    def _rows_of(self, collection: str, documents: JsonValue) -> LookedUp:
        if documents is None:
            return None
        if isinstance(documents, list):
            if not self.many:
                raise GraphQLError(f"The lookup may have several results: use `{MANY}`.")
            return [_document(collection, document) for document in documents]
        row = _document(collection, documents)
        return [row] if self.many else row


def _document(collection: str, document: JsonValue) -> AnyDocument:
    content = cast("JsonObject", document)
    return row(collection, {"id": content["_id"], "document": content})


def selected_lookups(selected_field: SelectedField) -> JsonValue:
    """Return the `lookup` of the query of a field's rows; None if no lookups are selected."""
    lookups: dict[FieldLookup, None] = {}
    for rows in selected_field.rows():
        for lookup, shown in _of_rows(rows):
            lookups[lookup] = None
            if selected_field.is_watched and any(True for _ in _of_rows(shown)):
                raise NotLive("A nested lookup cannot be part of a live query.")
    return [lookup.body for lookup in sorted(lookups)] or None


def _of_rows(rows: SelectedField) -> Iterator[tuple[FieldLookup, SelectedField]]:
    """Yield the lookups in a selection of documents, and the selections below them."""
    for field in rows.fields():
        if field.name not in (ONE, MANY):
            continue
        for source in field.fields():
            collection = source.extensions.get(_COLLECTION, source.arguments.get("collection"))
            yield FieldLookup(str(collection), str(field.arguments["local"])), source


class LookupTypes:
    """The types of one schema's lookups: a field for each collection that has a type."""

    def __init__(self, general: GraphQLObjectType) -> None:
        self._general = general
        self._nodes: list[tuple[str, str, GraphQLObjectType]] = []
        self.one = GraphQLObjectType("LookupOne", lambda: self._fields(many=False))
        self.many = GraphQLObjectType("LookupMany", lambda: self._fields(many=True))

    def add(self, field: str, collection: str, node: GraphQLObjectType) -> None:
        """Register the type of a collection for lookups."""
        self._nodes.append((field, collection, node))

    def _fields(self, *, many: bool) -> dict[str, GraphQLField]:
        general = GraphQLField(
            _list_type(self._general, many=many),
            _ANY_COLLECTION,
            resolve=_resolve_any,
            description="In any collection.",
            extensions={READ_GIVEN: lambda given: _reader(str(given["collection"]))},
        )
        fields = {"documents" if many else "document": general}
        for name, collection, node in self._nodes:
            fields[name] = GraphQLField(
                _list_type(node, many=many),
                resolve=_resolver(collection),
                extensions={READ: _reader(collection), _COLLECTION: collection},
            )
        return fields

    def of(self, shape: RecordShape, name: str) -> dict[str, GraphQLField]:
        """Return the lookup fields of documents of a shape."""
        paths = list(_paths(shape, "", "", many=False))
        titled = {ONE: (self.one, "Reference", False), MANY: (self.many, "References", True)}
        fields = {}
        for field, (kind, ending, many) in titled.items():
            values: dict[str, str] = {}
            for title, path, may_be in paths:
                if many in may_be:
                    values.setdefault(title, path)
            if values:
                local = GraphQLArgument(GraphQLNonNull(GraphQLEnumType(name + ending, values)))
                fields[field] = _lookup_field(kind, local, many=many)
        return fields


def _lookup_field(kind: GraphQLObjectType, local: GraphQLArgument, *, many: bool) -> GraphQLField:
    what = "The documents whose `_id`s are" if many else "The document whose `_id` is"
    return GraphQLField(
        kind,
        {"local": local},
        resolve=lambda source, _, local: LookupSource(source, local, many),
        description=f"{what} in a field, by its collection.",
        extensions={READ_GIVEN: lambda given: _opener(str(given["local"]), many=many)},
    )


def _opener(local: str, *, many: bool) -> Callable[[AnyDocument], LookupSource]:
    return lambda source: LookupSource(source, local, many)


def _list_type(
    node: GraphQLObjectType, *, many: bool
) -> GraphQLObjectType | GraphQLList[GraphQLNonNull[GraphQLObjectType]]:
    return GraphQLList(GraphQLNonNull(node)) if many else node


def _reader(collection: str) -> Callable[[LookupSource], LookedUp]:
    """Return the reader of included documents; the executor queries the others."""

    def read(source: LookupSource) -> LookedUp:
        try:
            return source.included(collection)
        except KeyError:
            raise NotAsDeclared from None

    return read


def _included_or_loaded(
    source: LookupSource, info: Resolving, collection: str
) -> LookedUp | Awaitable[LookedUp]:
    try:
        return source.included(collection)
    except KeyError:
        return source.load(info, collection)


def _resolver(
    collection: str,
) -> Callable[[LookupSource, Resolving], LookedUp | Awaitable[LookedUp]]:
    return lambda source, info: _included_or_loaded(source, info, collection)


def _resolve_any(
    source: LookupSource, info: Resolving, *, collection: str
) -> LookedUp | Awaitable[LookedUp]:
    return _included_or_loaded(source, info, collection)


def _paths(
    shape: RecordShape, title: str, path: str, *, many: bool
) -> Iterator[tuple[str, str, Iterable[bool]]]:
    """Yield fields that may refer to others: a name, a path, and whether to one or to many."""
    for member in shape.members:
        inner, is_list = _inner(member.shape)
        here, through = path + member.name, many or is_list
        if isinstance(inner, RecordShape):
            yield from _paths(inner, f"{title}{member.field}_", f"{here}.", many=through)
        elif inner is ScalarKind.JSON and not through:
            yield title + member.field, here, (False, True)
        else:
            yield title + member.field, here, (through,)


def _inner(shape: Shape) -> tuple[Shape, bool]:
    """Return the shape of the items of nested lists, and whether it is a list."""
    is_list = isinstance(shape, ListOf)
    while isinstance(shape, ListOf):
        shape = shape.item
    return shape, is_list
