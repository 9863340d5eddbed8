"""The fields that write one document: of any collection, or of one with its own types. A field
corresponds to a message of the native protocol, with its members in GraphQL's spelling. Collections
differ in the types of the document and the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from graphql import (
    GraphQLArgument,
    GraphQLBoolean,
    GraphQLField,
    GraphQLInputType,
    GraphQLInt,
    GraphQLNonNull,
    GraphQLOutputType,
    GraphQLScalarType,
    GraphQLString,
)

from rillbase_server.graphql import documents
from rillbase_server.graphql.context import Resolving
from rillbase_server.graphql.typed.types import Nullable


@dataclass(frozen=True, slots=True)
class WriteField:
    """A mutation and its arguments."""

    verb: str
    #: The corresponding message.
    message: str
    arguments: tuple[str, ...]
    description: str


_CHANGE = ("ifVersion", "idempotencyKey")
WRITES = (
    WriteField("insert", "insert", ("document", "idempotencyKey"), "Insert a document."),
    WriteField(
        "replace", "replace", ("key", "document", *_CHANGE), "Create or replace a document."
    ),
    WriteField(
        "update",
        "update",
        ("key", "update", "arrayFilters", "upsert", *_CHANGE),
        "Change a document with update operators.",
    ),
    WriteField(
        "merge",
        "update",
        ("key", "patch", "upsert", *_CHANGE),
        "Change a document with a merge patch (RFC 7396).",
    ),
    WriteField("delete", "delete", ("key", *_CHANGE), "Delete a document. Returns its key."),
)
#: Arguments whose names differ in native messages.
_MEMBERS: Mapping[str, str] = MappingProxyType(
    {
        "arrayFilters": "array_filters",
        "ifVersion": "if_version",
        "idempotencyKey": "idempotency_key",
    }
)


@dataclass(frozen=True, slots=True)
class Writes:
    """Creates the fields from the types of their arguments and results."""

    json: GraphQLScalarType
    #: A document after a write.
    node: GraphQLOutputType
    #: The type of a document as input, and its conversion to stored form.
    content: Nullable
    as_stored: Callable[[object], object] = lambda document: document

    def of_any_collection(self) -> dict[str, GraphQLField]:
        """Return fields such as `insertDocument`, which take the collection's name."""
        name = GraphQLArgument(GraphQLNonNull(GraphQLString), description="The collection's name.")
        return {
            f"{write.verb}Document": self._field(write, {"collection": name}) for write in WRITES
        }

    def of(self, collection: str, field: str) -> dict[str, GraphQLField]:
        """Return fields such as `todosInsert`, for the collection whose field is `todos`."""
        return {
            f"{field}{write.verb.capitalize()}": self._field(write, {}, collection)
            for write in WRITES
        }

    def _field(
        self, write: WriteField, arguments: dict[str, GraphQLArgument], of: str = ""
    ) -> GraphQLField:
        async def resolve(
            _: object, info: Resolving, *, collection: str = of, **members: object
        ) -> object:
            if "document" in members:
                members["document"] = self.as_stored(members["document"])
            if write.verb == "delete":
                await documents.write(info.context, write.message, collection, **members)
                return members["key"]
            return await documents.written(info.context, write.message, collection, **members)

        all_arguments = {**arguments, **{name: self._argument(name) for name in write.arguments}}
        answer = GraphQLNonNull(self.json) if write.verb == "delete" else self.node
        return GraphQLField(answer, all_arguments, resolve=resolve, description=write.description)

    def _argument(self, name: str) -> GraphQLArgument:
        types: dict[str, tuple[GraphQLInputType, str | None]] = {
            "key": (GraphQLNonNull(self.json), "The document's `_id`, as Extended JSON."),
            "document": (GraphQLNonNull(self.content), None),
            "update": (GraphQLNonNull(self.json), "Update operators, such as `$set`."),
            "patch": (GraphQLNonNull(self.json), None),
            "arrayFilters": (self.json, None),
            "upsert": (GraphQLBoolean, "Create the document if it does not exist."),
            "ifVersion": (GraphQLInt, "Write only if the document has this version."),
            "idempotencyKey": (GraphQLString, "Retries with the same key take effect once."),
        }
        argument_type, description = types[name]
        return GraphQLArgument(
            argument_type, description=description, out_name=_MEMBERS.get(name, name)
        )
