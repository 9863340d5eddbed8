from collections.abc import Sequence
from typing import Literal, TypeAlias, final

__all__ = [
    "Bounds",
    "Definition",
    "Filter",
    "Image",
    "JsonError",
    "Operation",
    "Projection",
    "QueryError",
    "Rule",
    "Selection",
    "Sort",
    "UpdateOperators",
    "Value",
    "envelope",
    "format_id",
    "id_key",
    "id_of",
    "key_hash",
    "parse_bulk",
    "parse_id",
    "parse_json",
]

_JsonValue: TypeAlias = (
    None | bool | int | float | str | list[_JsonValue] | dict[str, _JsonValue]
)
# Path and direction.
_Fields: TypeAlias = Sequence[tuple[str, int]]
# Number of the index, key, whether it takes part in sorting, whether it is enforced.
_Entry: TypeAlias = tuple[int, bytes, bool, bool]
# The first key, and the first one behind; None: to the end.
_Range: TypeAlias = tuple[bytes, bytes | None]
# Key, version, created and updated in milliseconds, BSON, the entry by which it was found.
_Row: TypeAlias = tuple[bytes, int, int, int, bytes, bytes | None]

class JsonError(ValueError):
    """Why and where a JSON document was refused; `str()` of it is for people."""

    code: str
    offset: int
    line: int
    column: int
    pointer: str

class QueryError(ValueError):
    """Why and where a query, a document or an operation was refused."""

    code: str
    pointer: str
    detail: str
    violations: list[tuple[str, str]]

def parse_json(
    body: bytes, *, max_depth: int = 100, max_values: int | None = None
) -> _JsonValue:
    """Return the JSON document in `body`, or raise `JsonError`.

    Stricter than the standard library: see `native/json`. Integers are exact; `-0` is a float,
    since only a float has its sign. `max_depth` bounds nesting, `max_values` the values in all.
    """

@final
class Value:
    """A value of a document or of a request's body."""

    @staticmethod
    def parse(ejson: bytes) -> Value:
        """Read one Extended JSON text."""

    @staticmethod
    def from_bson(body: bytes) -> Value:
        """View the bytes of a document."""

    @property
    def kind(self) -> str: ...
    @property
    def is_null(self) -> bool: ...
    def names(self) -> list[str]: ...
    def get(self, name: str) -> Value | None: ...
    def items(self) -> list[Value]: ...
    def text(self) -> str: ...
    def integer(self) -> int: ...
    def boolean(self) -> bool: ...
    def bson(self) -> bytes: ...
    def ejson(self, *, canonical: bool = False) -> bytes: ...
    def sort_key(self) -> bytes: ...

def parse_id(segment: str) -> Value:
    """Return the `_id` that a path's segment names, percent-decoded already."""

def format_id(id: Value) -> str:
    """Return the segment of a path that names an `_id`."""

def id_key(id: Value) -> bytes:
    """Return the key of the document with this `_id`."""

def id_of(body: bytes) -> Value:
    """Return the `_id` of a document."""

def key_hash(key: bytes) -> int:
    """Return the hash of a document's key that decides its write partition."""

@final
class Filter:
    """A parsed, normalized filter."""

    @staticmethod
    def parse(value: Value | None, *, pointer: str = "/filter") -> Filter: ...
    def matches(self, body: bytes, now_ms: int) -> bool: ...
    def and_(self, other: Filter) -> Filter: ...
    def canonical(self) -> bytes: ...
    def hash(self) -> bytes: ...
    def check_live(self) -> None: ...
    def bounds(self, fields: _Fields) -> Bounds | None: ...
    def id_bounds(self) -> list[_Range] | None: ...
    def access(self) -> list[tuple[str, str]] | None:
        """Return the predicates, path and kind, of which one must hold for a document to match;
        None: every document has to be looked at."""

    @property
    def ranks(self) -> bool: ...

@final
class Bounds:
    """Where in an index a filter's documents are."""

    @property
    def ranges(self) -> list[_Range]: ...
    @property
    def equalities(self) -> int: ...

@final
class Rule:
    """An access rule."""

    @staticmethod
    def parse(value: Value, *, pointer: str = "") -> Rule: ...
    def bind(self, claims: bytes | None) -> Filter | None: ...

@final
class Sort:
    """A sort, `_id` last."""

    @staticmethod
    def parse(
        value: Value | None, filter: Filter | None = None, *, pointer: str = "/sort"
    ) -> Sort: ...
    @property
    def by_id(self) -> bool:
        """Whether it is the order of the documents' keys."""

    def canonical(self) -> str: ...
    def direction(self, fields: _Fields, equalities: int) -> int | None: ...

@final
class Projection:
    """A projection."""

    @staticmethod
    def parse(value: Value, *, pointer: str = "/projection") -> Projection: ...

@final
class Definition:
    """A collection's schema and indexes, compiled."""

    def __new__(
        cls, schema: Value | None, indexes: Sequence[tuple[int, _Fields, bool]]
    ) -> Definition: ...
    def entries(self, body: bytes) -> list[_Entry]:
        """Return a document's entries in all indexes."""

@final
class UpdateOperators:
    """Update operators, parsed once for many documents."""

    @staticmethod
    def parse(update: Value, array_filters: Value | None) -> UpdateOperators: ...

@final
class Operation:
    """A change of one document."""

    @staticmethod
    def insert(document: Value) -> Operation: ...
    @staticmethod
    def replace(id: Value, document: Value, *, upsert: bool = True) -> Operation: ...
    @staticmethod
    def update(
        id: Value, update: Value, *, array_filters: Value | None = None, upsert: bool = False
    ) -> Operation: ...
    @staticmethod
    def update_found(id: Value, update: UpdateOperators, filter: Filter) -> Operation:
        """Update a document that was found by a filter, while it still matches."""

    @staticmethod
    def merge(id: Value, patch: Value, *, upsert: bool = False) -> Operation: ...
    @staticmethod
    def delete(id: Value) -> Operation: ...
    @staticmethod
    def delete_found(id: Value, filter: Filter) -> Operation:
        """Delete a document that was found by a filter, while it still matches."""

    @property
    def kind(self) -> Literal["insert", "replace", "update", "merge", "delete"]: ...
    @property
    def key(self) -> bytes: ...
    @property
    def id(self) -> Value: ...
    @property
    def collection(self) -> str | None: ...
    @property
    def if_version(self) -> int | None: ...
    @property
    def upsert(self) -> bool: ...
    @property
    def size(self) -> int: ...
    def apply(
        self,
        definition: Definition,
        before: bytes | None,
        now_ms: int,
        create: Filter | None = None,
        update: Filter | None = None,
        delete: Filter | None = None,
    ) -> Image:
        """Return the document as this operation leaves it."""

@final
class Image:
    """A document as an operation leaves it."""

    @property
    def key(self) -> bytes: ...
    @property
    def key_hash(self) -> int: ...
    @property
    def id_bson(self) -> bytes: ...
    @property
    def body(self) -> bytes | None: ...
    @property
    def entries(self) -> list[_Entry]: ...
    @property
    def added(self) -> list[_Entry]: ...
    @property
    def removed(self) -> list[_Entry]: ...

def parse_bulk(
    body: bytes, *, ndjson: bool, max_operations: int, transaction: bool = False
) -> tuple[list[Operation | QueryError], bool]:
    """Return the operations of a bulk body or a transaction, and whether they are all or none."""

@final
class Selection:
    """A query being answered: candidates in, a page out."""

    def __new__(
        cls,
        filter: Filter,
        sort: Sort,
        *,
        offset: int,
        limit: int,
        after: bytes | None,
        now_ms: int,
        max_bytes: int,
        projection: Projection | None = None,
        ordered: bool = False,
    ) -> Selection: ...
    def by_index(
        self, index: _Fields, bounds: Bounds | None, backward: bool
    ) -> Selection:
        """Return the same selection for candidates that come in the order of an index."""

    def feed(self, rows: Sequence[_Row]) -> Literal["more", "enough", "misplaced"]:
        """Take candidates in. Return `more`, `enough` or `misplaced`."""

    @property
    def examined(self) -> int: ...
    @property
    def matched(self) -> int: ...
    def finish(
        self, *, canonical: bool = False
    ) -> tuple[bytes, tuple[bytes, bytes, bytes] | None, int]:
        """Return the page as JSON, what the next one begins behind, if there is one (place in the
        order, index entry, key), and the page's length."""

    def bodies(self) -> tuple[list[bytes], bytes | None]:
        """Return the bodies of the page in order, and the place behind it if more may follow."""

def envelope(
    version: int,
    created_ms: int,
    updated_ms: int,
    body: bytes,
    *,
    canonical: bool = False,
    projection: Projection | None = None,
) -> bytes:
    """Return a document's envelope as JSON."""
