import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Literal, TypeAlias, TypedDict, final

__all__ = [
    "Bounds",
    "Change",
    "Changes",
    "CsvReader",
    "CsvRecords",
    "CsvWriter",
    "Definition",
    "DocumentMapping",
    "Engine",
    "EngineBatch",
    "EngineError",
    "EngineScan",
    "EngineSnapshot",
    "EngineTransaction",
    "Expected",
    "FailQuery",
    "FetchDocuments",
    "Filter",
    "GridNode",
    "Group",
    "Grouping",
    "Hub",
    "HubFrame",
    "HubMemory",
    "JsonError",
    "JsonItemReader",
    "KeyspaceOptions",
    "LiveQuery",
    "LogUnevaluated",
    "Lookups",
    "Node",
    "NodeError",
    "NodeSpeaker",
    "Operation",
    "Operations",
    "Outcomes",
    "Plan",
    "Projection",
    "QueryError",
    "Question",
    "RecheckAccess",
    "RegisterQuery",
    "RenewQuery",
    "ReplayLog",
    "Rule",
    "Selection",
    "Sort",
    "SubscriptionFigures",
    "UnregisterQuery",
    "UpdateOperators",
    "Value",
    "candidate_rows",
    "document_versions",
    "dump_file",
    "encode_write",
    "envelope",
    "format_id",
    "guess_csv_delimiter",
    "id_key",
    "id_of",
    "key_hash",
    "leading_double",
    "parse_id",
    "parse_json",
    "query_partition",
    "restore_database",
    "truncate_damaged_log",
    "verify_database",
    "write_partition",
]

_JsonValue: TypeAlias = None | bool | int | float | str | list[_JsonValue] | dict[str, _JsonValue]
# Path and direction, or the path and the order of a spatial index.
_Fields: TypeAlias = Sequence[tuple[str, int | str]]
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

def parse_json(body: bytes, *, max_depth: int = 100, max_values: int | None = None) -> _JsonValue:
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
    def parse_request(ejson: bytes) -> Value:
        """Read a request's body.

        Its members have bounds that hold while it is read: `filter`, `sort`, `projection`,
        `group`, `lookup` and `array_filters` 256 KiB each, lists of documents none, all else that
        of a document.
        """

    @staticmethod
    def parse_message(ejson: bytes) -> tuple[Value, QueryError | None]:
        """Read a request, passing over members beyond their bounds; return why the first was."""

    @staticmethod
    def parse_document(ejson: bytes) -> Value:
        """Read a request's body that is a document, or a change to one."""

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

def key_hash(key: bytes) -> int:
    """Return the hash of a document's key, which decides the write partition."""

def id_of(body: bytes) -> Value:
    """Return the `_id` of a document."""

@final
class CsvReader:
    """Reads a CSV file part by part. Its methods raise `QueryError` if the rest is unreadable."""

    def __new__(cls, *, delimiter: str = ",") -> CsvReader: ...
    def push(self, part: bytes) -> CsvRecords:
        """Read a part and return the records that it completes."""

    def finish(self) -> CsvRecords:
        """End the file and return its last record, which may lack a line end."""

@final
class CsvRecords:
    """Complete records of a CSV file."""

    def __len__(self) -> int: ...
    def line(self, index: int) -> int:
        """Return the line on which a record begins."""

    def size(self, index: int) -> int:
        """Return the bytes of a record in the file."""

    def problem(self, index: int) -> str | None:
        """Return why a record cannot be used, if it cannot."""

    def fields(self, index: int) -> list[str | None]:
        """Return the texts of a record; None stands for an empty field without quotes."""

    def document(self, index: int, mapping: DocumentMapping) -> Value:
        """Return the document that a record becomes, or raise `QueryError`."""

    def problems(self, most: int) -> list[tuple[int, str]]:
        """Return the line and detail of the first records that cannot be used."""

    def column(
        self, first: int, column: int, kind: str, *, max_problems: int
    ) -> tuple[int, bytes, bytes, bytes, list[tuple[int, str]]]:
        """Return a column of the usable records from `first` on in Arrow's layout.

        The number of rows, the validity bits, the ends of texts, the values, and the line and
        detail of each problem.
        """

    def guess_type(self, first: int, column: int) -> str:
        """Return the type that all values of a column have, from the record `first` on."""

@final
class DocumentMapping:
    """Which column becomes which field of a document."""

    def __new__(cls, columns: Sequence[tuple[str, str, str | None]]) -> DocumentMapping:
        """Take columns, each with its name in the file, the path of its field, and its type."""

    def for_header(self, header: Sequence[str]) -> DocumentMapping:
        """Return the mapping for a CSV file with this header."""

    def document(self, value: Value) -> Value:
        """Return the document that a JSON document becomes. Types apply to its strings."""

@final
class JsonItemReader:
    """Cuts a JSON file into its documents, part by part."""

    def __new__(cls, max_bytes: int, *, one_line: bool = False) -> JsonItemReader:
        """With `one_line`, line breaks around the parts of a document become spaces."""

    def push(self, part: bytes) -> list[tuple[int, int, bytes]]:
        """Return the complete documents, each with the line and the column at which it begins."""

    def finish(self) -> None:
        """Raise `QueryError` if the file is not complete."""

@final
class CsvWriter:
    """Writes documents as CSV records with the same columns."""

    def __new__(
        cls, columns: Sequence[str], *, delimiter: str = ",", escape_formulas: bool = True
    ) -> CsvWriter: ...
    def header(self) -> bytes: ...
    def rows(self, bodies: Sequence[bytes]) -> bytes:
        """Return the records of documents, given as BSON."""

def guess_csv_delimiter(sample: bytes) -> str:
    """Return the delimiter that a sample of a CSV file uses."""

def write_partition(key: bytes, partitions: int) -> int:
    """Return the write partition of the document with this key."""

def query_partition(query: bytes, partitions: int) -> int:
    """Return the query partition of the query with this hash."""

@final
class Filter:
    """A parsed, normalized filter."""

    @staticmethod
    def parse(value: Value | None, *, pointer: str = "/filter") -> Filter: ...
    def matches(self, body: bytes, now_ms: int) -> bool:
        """Return whether the document matches. One that cannot be evaluated does not."""

    def evaluate(self, body: bytes, now_ms: int) -> bool:
        """Return whether the document matches, or raise why it cannot be evaluated."""

    def explain(self, body: bytes, now_ms: int) -> str:
        """Return why the document matches or does not: a JSON object."""

    def reach(self, body: bytes) -> tuple[str, list[str], bool]:
        """Return by what kind of predicate live queries like this are found, at which paths it
        waits, and whether the document is led there, so that the filter is asked."""

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
    def near(self) -> tuple[str, str, float, float, float] | None:
        """Return how an index is read by the distances of `$near`: path and order of the index, the
        first distance to read, the greatest up to which a part is read, and that within which all
        matches are."""

    def within(self, distance: float) -> Filter:
        """Return the same filter within a distance of its `$near`."""

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
class Group:
    """How documents are grouped."""

    @staticmethod
    def parse(value: Value, *, pointer: str = "/group") -> Group: ...
    def check_sort(self, sort: Sort, *, pointer: str = "/sort") -> None:
        """Refuse a sort by what no row has."""

@final
class Lookups:
    """What is looked up for each document."""

    @staticmethod
    def parse(value: Value, *, pointer: str = "/lookup") -> Lookups: ...
    @property
    def collections(self) -> list[str]:
        """The collections that are looked up, each once."""

@final
class Projection:
    """A projection."""

    @staticmethod
    def parse(value: Value, *, pointer: str = "/projection") -> Projection: ...

@final
class Definition:
    """A collection's schema and indexes, compiled."""

    def __new__(
        cls,
        schema: Value | None,
        indexes: Sequence[tuple[int, _Fields, bool]],
        *,
        max_array_elements: int = ...,
        max_values: int = ...,
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

@final
class Expected:
    """What If-Match and If-None-Match ask of a document."""

    def __new__(
        cls,
        versions: Sequence[int] | None = None,
        *,
        present: bool = False,
        absent: bool = False,
    ) -> Expected: ...

@final
class Operations:
    """The operations of one write, in their order; those that could not be read as refusals."""

    def __new__(cls, operations: Sequence[Operation]) -> Operations: ...
    @staticmethod
    def parse(
        body: bytes, *, ndjson: bool, max_operations: int, transaction: bool = False
    ) -> tuple[Operations, bool]:
        """Return the operations of a bulk body or a transaction, and whether they are all or none."""

    def __len__(self) -> int: ...
    def part(self, start: int, end: int) -> Operations:
        """Return those from one place up to another."""

    def collections(self) -> list[str]:
        """Return the collections that operations name; "" where one names none."""

    @property
    def size(self) -> int: ...

_Rules: TypeAlias = tuple[Filter | None, Filter | None, Filter | None, Filter | None]
_Target: TypeAlias = tuple[str, int, _Rules | None]

@final
class Plan:
    """What a group of writes wants done.

    Collections are ids with definitions, in the order in which everybody locks them. A write is
    its operations, its targets (name, number of the collection, the filters of read, create,
    update and delete or None), whether all or none are done, and what it expects of documents.
    """

    def __new__(
        cls,
        collections: Sequence[tuple[bytes, Definition]],
        writes: Sequence[tuple[Operations, Sequence[_Target], bool, Expected | None]],
    ) -> Plan: ...
    def keys(self, collection: int, also_new: bool) -> bytes | None:
        """Return the keys of documents that may be there, as an array for the database."""

    def apply(
        self,
        rows: Sequence[Sequence[tuple[bytes, bytes, bytes, bytes | None]]],
        floors: Sequence[int],
        now_ms: int,
        skipped: Sequence[int],
        owned: tuple[dict[int, str], Sequence[tuple[int, bytes, int, bytes, Sequence[int]]]]
        | None = None,
    ) -> Changes:
        """Apply the writes, except those that are skipped, to the rows of each collection.

        `owned`: the names of unique indexes by number, and keys that documents have: the index, the
        key, the number of the collection, the document's key, and the writes whose callers may not
        read it. Without it, the database finds the conflicts.
        """

@final
class Changes:
    """What a group of writes leaves behind."""

    def __len__(self) -> int: ...
    def outcomes(self, write: int, operations: Operations) -> Outcomes:
        """Return how a write of these operations ended; raise what all of it was refused for."""

    def inserted(self, collection: int) -> Sequence[bytes] | None:
        """Return the columns of documents to insert: keys, hashes, versions, bodies."""

    def updated(self, collection: int) -> Sequence[bytes] | None:
        """Return the columns of rows to update: keys, versions, bodies, moments of creation."""

    def announced(self, collection: int) -> Sequence[bytes] | None:
        """Return the columns of outbox rows: keys, hashes, versions, ids of deleted documents."""

    def added(self) -> Sequence[bytes] | None:
        """Return entries to add: indexes, keys, documents' keys, whether they sort, are enforced."""

    def removed(self) -> Sequence[bytes] | None:
        """Return entries to remove: indexes, keys, documents' keys."""

    def enforced(self) -> Sequence[bytes] | None:
        """Return, of the entries to add, those that no other document may have."""

    def covering_hashes(self) -> list[int]:
        """Return hashes of keys that fall into the same write partitions as all of these documents,
        in every grid: few, however many documents there are.
        """

    def after_images(
        self,
        xid: int,
        tenant: bytes,
        rules_versions: Sequence[int],
        limits: tuple[int, int] | None,
    ) -> list[tuple[int, bytes]]:
        """Return after-images as arguments of a command, with their number, in parts of at most so
        many images and about so many bytes; None: all in one."""

@final
class Outcomes:
    """How the operations of a write ended, in their order."""

    def __new__(cls, *parts: Outcomes) -> Outcomes:
        """Join the outcomes of a write's parts."""

    @staticmethod
    def refused(code: str, detail: str, violations: Sequence[tuple[str, str]]) -> Outcomes:
        """One operation that was refused by the database."""

    @staticmethod
    def decode(result: bytes, operations: Operations | None = None) -> Outcomes:
        """Return what a storage node answered to a write. Errors are located in the body of its
        operations.

        Raises `QueryError` if the write was rejected as a whole.
        """

    def __len__(self) -> int: ...
    def refusals(self) -> list[tuple[int, QueryError]]:
        """Return what was refused, by place."""

    def change(self, number: int) -> Change:
        """Return what one operation changed, or raise what it was refused for."""

    def results(self, refusals: Sequence[str], *, canonical: bool = False) -> bytes:
        """Return ids and versions as a JSON array; `refusals` are the items of what was refused."""

@final
class Change:
    """A document that was changed."""

    @property
    def id(self) -> Value: ...
    @property
    def version(self) -> int: ...
    @property
    def body(self) -> bytes | None: ...
    @property
    def created(self) -> bool: ...
    def envelope(self, *, canonical: bool = False) -> bytes | None:
        """Return the envelope of a document that is there, as JSON."""

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
        page_bytes: int,
        projection: Projection | None = None,
        ordered: bool = False,
        group: Group | None = None,
        lookups: Lookups | None = None,
        readable: Filter | None = None,
    ) -> Selection: ...
    def by_index(self, index: _Fields, bounds: Bounds | None, backward: bool) -> Selection:
        """Return the same selection for candidates that come in the order of an index."""

    def feed(self, rows: Sequence[_Row]) -> Literal["more", "enough", "misplaced"]:
        """Take candidates in. Return `more`, `enough` or `misplaced`."""

    @property
    def unevaluated(self) -> tuple[int, str | None]:
        """How many documents were left out because they could not be evaluated, of those that the
        caller may read, and why the first was."""

    @property
    def examined(self) -> int: ...
    @property
    def matched(self) -> int: ...
    @property
    def row_count(self) -> int:
        """How many documents are in the result, one more than requested at most."""

    @property
    def held_bytes(self) -> int:
        """How many bytes the documents take that are held."""

    def finish(
        self, *, canonical: bool = False
    ) -> tuple[bytes, tuple[bytes, bytes, bytes] | None, int]:
        """Return the page as JSON, what the next one begins behind, if there is one (place in the
        order, index entry, key), and the page's length."""

    def references(self, lookups: Lookups) -> list[list[bytes]]:
        """Return the keys to which the page's documents refer, of each of the lookups' collections.
        Nothing more is taken in."""

    def embed(
        self, lookups: Lookups, found: Sequence[Sequence[tuple[bytes, bytes]]], max_bytes: int
    ) -> None:
        """Show with each document those that it refers to; `found` has key and BSON of those of
        each of the lookups' collections."""

    def bodies(self) -> tuple[list[bytes], bytes | None]:
        """Return the bodies of the page in order, and the place behind it if more may follow."""

    def rows(self) -> tuple[list[tuple[bytes, int, int, int, bytes]], bool]:
        """Return key, version, created and updated in milliseconds, and BSON of the page's rows in
        order, and whether more may follow."""

@final
class Grouping:
    """A query that groups, being answered: candidates in, rows out."""

    def __new__(
        cls,
        filter: Filter,
        group: Group,
        *,
        now_ms: int,
        most: int,
        readable: Filter | None = None,
    ) -> Grouping: ...
    @property
    def unevaluated(self) -> tuple[int, str | None]:
        """How many documents were left out because they could not be evaluated, of those that the
        caller may read, and why the first was."""

    @property
    def held_bytes(self) -> int:
        """How many bytes the groups take, at most."""

    def feed(self, rows: Sequence[_Row]) -> Literal["more", "enough", "misplaced"]:
        """Take candidates in. Return `more`: all that there are count."""

    def render(
        self, sort: Sort | None, *, offset: int, limit: int, canonical: bool = False
    ) -> bytes:
        """Return some of the rows in order as JSON."""

def leading_double(key: bytes) -> float | None:
    """Return the number at the beginning of a sort position, if it is a double."""

def candidate_rows(rows: bytes) -> list[tuple[bytes, int, int, int, bytes, bytes | None]]:
    """Return the candidates that a storage node sent.

    They are keys, versions, creation and update times in milliseconds, bodies and entries.
    """

def document_versions(versions: bytes) -> list[tuple[int, int, bytes | None]]:
    """Return the versions of documents that a storage node sent.

    They are versions, xids and bodies. A deleted document has no body, and a missing one has
    version and xid 0.
    """

def encode_write(
    operations: Operations,
    targets: Sequence[_Target],
    *,
    atomic: bool,
    expected: Expected | None = None,
) -> bytes:
    """Return a write as a storage node reads it.

    Targets refer to the collections of the command by their positions.
    """

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

# `xmin`, `xmax`, and those between that were running.
_Snapshot: TypeAlias = tuple[int, int, Sequence[int]]
# Key, version, created and updated in milliseconds, BSON.
_LiveRow: TypeAlias = tuple[bytes, int, int, int, bytes]
# What was read of a collection that is looked up: rows, and whether there are no others.
_Foreign: TypeAlias = tuple[Sequence[_LiveRow], bool]

@final
class LiveQuery:
    """A query of a collection, its access rule included, as it is registered with the grid."""

    def __new__(
        cls,
        tenant: bytes,
        collection: bytes,
        filter: Filter,
        sort: Sort,
        ordered_by: Value | None,
        *,
        offset: int,
        limit: int | None,
        rules_version: int,
        slack: int,
        group: Group | None = None,
        lookups: Lookups | None = None,
        projection: Value | None = None,
        sides: Sequence[tuple[bytes, int, Filter | None]] = ...,
        rule: Filter | None = None,
    ) -> LiveQuery:
        """`rule` is the access rule that is part of `filter`."""

    @staticmethod
    def read(bytes: bytes) -> LiveQuery:
        """Read a definition, as `definition` writes it."""

    @property
    def hash(self) -> bytes: ...
    @property
    def tenant(self) -> bytes: ...
    @property
    def collection(self) -> bytes: ...
    @property
    def rules_version(self) -> int: ...
    @property
    def sorted(self) -> bool: ...
    @property
    def grouped(self) -> bool: ...
    @property
    def offset(self) -> int: ...
    @property
    def limit(self) -> int | None: ...
    @property
    def slack(self) -> int: ...
    def filter(self) -> Filter:
        """Return the filter, the access rule included."""

    def readable(self) -> Filter | None:
        """Return what those who watch may read; None: everything."""

    def sort(self) -> Sort:
        """Return the order of the rows."""

    def group(self) -> Group | None:
        """Return how documents are grouped, if they are."""

    @property
    def looks_up(self) -> bool: ...
    def lookups(self) -> Lookups | None:
        """Return what is looked up for each document, if anything is."""

    def sides(self) -> list[tuple[bytes, int, Filter]]:
        """Return the collections that are looked up: id, version of the access rules, access
        rule."""

    def side_names(self) -> list[str]:
        """Return the names of the collections that are looked up."""

    def references(self, rows: Sequence[_LiveRow]) -> list[list[bytes]]:
        """Return the keys to which documents refer, of each collection that is looked up."""

    def shown(self, rows: Sequence[_LiveRow], foreign: Sequence[_Foreign] = ...) -> list[_LiveRow]:
        """Return the rows of the result: of documents, with what was read of those that they refer
        to, or of the groups that they are in."""

    def with_slack(self, slack: int) -> LiveQuery:
        """Return the same query with another number of rows beyond the window."""

    def definition(self) -> bytes:
        """Return what the registry keeps, without an activation number."""

    def request(
        self,
        positions: Sequence[str],
        snapshot: _Snapshot,
        rows: Sequence[_LiveRow],
        *,
        complete: bool,
        renewal: bool,
        foreign: Sequence[_Foreign] = ...,
    ) -> bytes:
        """Return what the nodes are told, without an activation number."""

# Key, version, writing transaction (0: none that anybody remembers), and BSON of what may be seen.
_Fetched: TypeAlias = tuple[bytes, int, int, bytes | None]

@final
class Question:
    """A sort node's question for single documents of the collections that a query looks up."""

    @staticmethod
    def read(bytes: bytes) -> Question:
        """Read a question, as `FetchDocuments` has it."""

    @property
    def name(self) -> str:
        """Return what no other question has."""

    @property
    def keys(self) -> list[list[bytes]]:
        """Return the keys, of each collection that is looked up."""

    def answer(self, documents: Sequence[Sequence[_Fetched]]) -> bytes:
        """Return what the sort node is told, with what one snapshot has of each collection."""

@final
class RegisterQuery:
    """Read a query's rows and register it with the grid's nodes.

    Answered by `Hub.registered` or `Hub.refused`.
    """

    @property
    def query(self) -> bytes: ...

@final
class UnregisterQuery:
    """Release a query whose last subscription has ended."""

    @property
    def query(self) -> bytes: ...

@final
class RenewQuery:
    """Read a query's rows again, with `slack` more of them beyond its window."""

    @property
    def query(self) -> bytes: ...
    @property
    def slack(self) -> int: ...

@final
class FetchDocuments:
    """Read single documents that a query looks up, for the sort node.

    `question` is for `Question.read`.
    """

    @property
    def query(self) -> bytes: ...
    @property
    def question(self) -> bytes: ...

@final
class RecheckAccess:
    """Check the access of a query's subscribers again: a write was made under newer rules."""

    @property
    def query(self) -> bytes: ...

@final
class FailQuery:
    """End the subscriptions of a query that a node cannot watch. Answered by `Hub.refused`."""

    @property
    def query(self) -> bytes: ...
    @property
    def code(self) -> str:
        """Return the code of the error."""

    @property
    def detail(self) -> str:
        """Return the detail of the error, for people."""

@final
class LogUnevaluated:
    """Add to the error log that documents cannot be evaluated for a query and are in no result."""

    @property
    def query(self) -> bytes: ...
    @property
    def count(self) -> int: ...

@final
class ReplayLog:
    """Read the part of a notification log that a subscription missed. Answered by `Hub.replay`."""

    @property
    def subscription(self) -> int: ...
    @property
    def partition(self) -> int: ...
    @property
    def after(self) -> str:
        """Return the last entry that the client has seen."""

    @property
    def upto(self) -> str:
        """Return the last entry to read."""

_HubRequest: TypeAlias = (
    RegisterQuery
    | UnregisterQuery
    | RenewQuery
    | FetchDocuments
    | RecheckAccess
    | FailQuery
    | LogUnevaluated
    | ReplayLog
)

@final
class HubFrame:
    """A frame for one subscription."""

    @property
    def subscription(self) -> int: ...
    @property
    def text(self) -> bytes:
        """Return the frame, JSON text."""

    @property
    def is_last(self) -> bool:
        """Return whether the subscription ends with it."""

@final
class SubscriptionFigures:
    """The state of one subscription."""

    @property
    def state(self) -> Literal["starting", "live", "stale"]: ...
    @property
    def events(self) -> int:
        """Return the number of events that were sent."""

    @property
    def waiting(self) -> int:
        """Return the number of events that wait to be sent."""

    @property
    def lag_us(self) -> int | None:
        """Return how far the query is behind the writes, in microseconds."""

    @property
    def waiting_bytes(self) -> int:
        """Return the memory that is kept for this subscription alone."""

    @property
    def result_bytes(self) -> int:
        """Return the memory of the query's result, which all of its subscriptions share."""

@final
class HubMemory:
    """The memory of a hub in bytes, and how often it was relieved."""

    @property
    def results(self) -> int:
        """Return the bytes of results."""

    @property
    def waiting(self) -> int:
        """Return the bytes of changes that wait to be applied to results."""

    @property
    def outboxes(self) -> int:
        """Return the bytes that clients have not read."""

    @property
    def let_go(self) -> int:
        """Return how often the bodies of a result were evicted."""

    @property
    def cut_off(self) -> int:
        """Return how many clients were cut off."""

    @property
    def refused(self) -> int:
        """Return how many queries were refused."""

@final
class Hub:
    """The hub of one process: what its subscribers are told.

    It does no input or output: `read` takes entries of the notification logs, `poll` returns frames,
    and `take_requests` what else the app server has to do.
    """

    def __new__(
        cls,
        secret: bytes,
        *,
        installation: int,
        epoch: int,
        write_partitions: int,
        outbox_frames: int,
        outbox_bytes: int,
        memory_bytes: int,
        trace_bytes: int,
    ) -> Hub: ...
    def attach(
        self,
        subscription: int,
        name: str,
        query: LiveQuery,
        partition: int,
        *,
        holder: bytes,
        projection: Projection | None = None,
        whole_results: bool = False,
        throttle_ms: int = 0,
        muted: Sequence[bool] = ...,
        canonical: bool = False,
        resume: str | None = None,
        reset: str | None = None,
        connection: int,
    ) -> None:
        """Begin a subscription. `muted`: `add`, `change`, `changeIndex`, `remove` not wanted.

        `canonical`: documents are sent as canonical Extended JSON.
        `connection` identifies the connection that carries it, perhaps among others.
        """

    def detach(self, subscription: int) -> None:
        """End a subscription without a word."""

    def asked(self, query: bytes) -> int | None:
        """Name the registration that a query waits for, before the log's end is noted."""

    def registered(
        self,
        query: bytes,
        asked: int,
        activation: int,
        request: str,
        log_end: str,
        snapshot: _Snapshot,
        rows: Sequence[_LiveRow],
    ) -> None:
        """Take the rows of a query, as registered behind the log's end by a request."""

    def refused(self, query: bytes, problem: str) -> None:
        """End all subscriptions of a query with a problem, JSON text."""

    def forgotten(self, partition: int, held: Sequence[bytes]) -> None:
        """Have queries of a log registered again that the event layer does not hold any more."""

    def lost(self, partition: int) -> None:
        """Have all queries of a log registered again: entries of it are missing."""

    def moved(
        self, *, installation: int, epoch: int, write_partitions: int, query_partitions: int
    ) -> None:
        """Follow another grid: what is read from here on is of its logs."""

    def read(self, partition: int, entries: Sequence[tuple[str, bytes]]) -> int:
        """Read entries of a log; return how many. One that cannot be read raises `ValueError`."""

    def replay(self, subscription: int, entries: Sequence[tuple[str, bytes]] | None) -> None:
        """Take what a subscription missed; None: the log no longer has it."""

    def tick(self, now_us: int) -> None:
        """Let time pass: Valkey's, in microseconds."""

    def set_trace_time(self, now_us: int) -> None:
        """Set the time of what is traced from here on: Valkey's, in microseconds."""

    def has_frames(self) -> bool:
        """Whether there are frames to hand out at once."""

    def poll(self, most: int) -> list[HubFrame]:
        """Take frames to send."""

    def drained(self, subscription: int, frames: int, size_bytes: int) -> None:
        """Learn how much has left for a client."""

    def unevaluated(self, query: bytes, count: int) -> None:
        """Learn how many documents were left out of the rows that were registered."""

    def take_requests(self) -> list[_HubRequest]:
        """Take the requests to the app server."""

    def query(self, query: bytes) -> LiveQuery | None:
        """Return a query that is watched."""

    def subscriptions(self, query: bytes) -> list[int]:
        """Return the subscriptions of a query."""

    def figures(self, subscription: int) -> SubscriptionFigures | None:
        """Return the state of a subscription; None: there is no such subscription."""

    def trace(
        self,
        subscription: int,
        key: bytes,
        version: int,
        *,
        xid: int | None = None,
        body: bytes | None = None,
        times_ms: tuple[int, int] | None = None,
    ) -> str | None:
        """Return what is known of a version of a document for a subscription, a JSON object; None:
        there is no such subscription. `body` is what the document was then, if it matches;
        `times_ms` is when it was created and when this version was written."""

    def trace_bytes(self) -> int:
        """Return the bytes of what is remembered for `trace`."""

    def has_room(self) -> bool:
        """Tell whether more subscriptions may come."""

    def memory(self) -> HubMemory:
        """Return the hub's memory, and how often it had to relieve it."""

class EngineError(Exception):
    """Why the storage engine failed: `code` for programs, `str()` for people.

    `file` and `offset` say where, for `corruption` and `io_error`.
    """

    code: Literal[
        "io_error",
        "corruption",
        "poisoned",
        "locked",
        "conflict",
        "stopped",
        "invalid_argument",
    ]
    file: str | None
    offset: int | None

_Compression: TypeAlias = Literal["none", "lz4", "zstd"]

class _LevelStats(TypedDict):
    runs: int
    files: int
    bytes: int
    entries: int
    deletes: int

class _KeyspaceStats(TypedDict):
    name: str
    memtable_bytes: int
    waiting_memtables: int
    levels: list[_LevelStats]
    # Places that a lookup asks at most; bytes of all tables by those of the oldest run.
    read_amplification: int
    space_amplification: float

class _EngineStats(TypedDict):
    keyspaces: list[_KeyspaceStats]
    sequence: int
    batches: int
    entries: int
    batch_bytes: int
    flushes: int
    flushed_bytes: int
    compactions: int
    moves: int
    dropped_files: int
    unremoved_files: int
    compaction_read_bytes: int
    compaction_written_bytes: int
    slowed_micros: int
    stopped_micros: int
    waited_micros: int
    cache_hits: int
    cache_misses: int
    log_bytes: int
    cache_bytes: int
    open_table_bytes: int
    snapshots: int
    write_amplification: float
    direct_io: bool

class _Verified(TypedDict):
    tables: int
    entries: int
    table_bytes: int
    log_records: int
    log_segments: int
    # File, offset and records behind it of an unsynced end, which opening cuts.
    log_cut: tuple[str, int, int] | None

class _TruncatedLog(TypedDict):
    # Where the damage is, and how many records after it are no longer in the log.
    file: str
    offset: int
    dropped: int
    # The records that remain, and copies of the files that had others.
    records: int
    copies: list[str]

@final
class KeyspaceOptions:
    """How a keyspace behaves."""

    def __new__(
        cls,
        *,
        strategy: Literal["leveled", "size_tiered", "lazy_leveled", "time_window"] = "leveled",
        fanout: int = 10,
        runs: int = 4,
        window_ms: int = ...,
        expiry: Literal["by_entry", "by_key"] = "by_entry",
        compression: _Compression | Sequence[_Compression] = ...,
        memtable_bytes: int = ...,
        table_bytes: int = ...,
        base_bytes: int = ...,
        block_bytes: int = ...,
        filter_bits: int = 10,
        tail_bytes: int = 0,
    ) -> KeyspaceOptions:
        """Arrange tables by `strategy`.

        `fanout` is how many times larger a level is than the one above (`leveled`), `runs` how many
        runs a level or a window collects (the others), `window_ms` how long a window is.
        `compression` is that of all levels, or of each, the last for all that follow. Filters leave
        out the last `tail_bytes` of keys, for `Engine.scan_head`.
        """

@final
class Engine:
    """A database of keyspaces in a directory.

    Its methods may be called by many threads at once. They raise `EngineError`.
    """

    def __new__(
        cls,
        directory: str | os.PathLike[str],
        keyspaces: Mapping[str, KeyspaceOptions] | None = None,
        *,
        memory_bytes: int | None = None,
        cache_bytes: int | None = None,
        table_cache_bytes: int | None = None,
        memtables_bytes: int | None = None,
        log_bytes: int = ...,
        background_threads: int = 2,
        sub_compactions: int = 1,
        write_rate: int = 0,
        direct_io: bool = False,
        unknown_merges: bool = False,
    ) -> Engine:
        """Open the database in a directory, or make one.

        `memory_bytes` is divided among memtables, block cache and open tables, but for those that
        have a budget of their own; without it they have 256, 64 and 64 MiB.
        A large compaction is divided among `sub_compactions` threads; flushes and compactions
        write at most `write_rate` bytes a second, if it is not 0. With `direct_io` tables go past
        the system's cache, where it lets them (`stats()["direct_io"]`). With `unknown_merges`
        keyspaces open whose merge is not known here: keys with operands cannot be read.
        """
    def keyspaces(self) -> list[str]:
        """Return the names of the keyspaces."""

    def create_keyspace(self, name: str, options: KeyspaceOptions | None = None) -> None:
        """Make a keyspace, unless there is one of that name."""

    def drop_keyspace(self, name: str) -> None:
        """Drop a keyspace with all that is in it."""

    def batch(self) -> EngineBatch:
        """Return an empty batch of writes."""

    def transaction(self) -> EngineTransaction:
        """Return a transaction that begins now."""

    def get(
        self, keyspace: str, key: bytes, *, snapshot: EngineSnapshot | None = None
    ) -> bytes | None:
        """Return a key's value, if it has one."""

    def multi_get(
        self,
        keyspace: str,
        keys: Sequence[bytes],
        *,
        snapshot: EngineSnapshot | None = None,
    ) -> list[bytes | None]:
        """Return the values of many keys at one moment, in the order of the keys."""

    def scan(
        self,
        keyspace: str,
        start: bytes | None = None,
        end: bytes | None = None,
        *,
        reverse: bool = False,
        snapshot: EngineSnapshot | None = None,
    ) -> EngineScan:
        """Return an iterator over keys from `start` up to `end`, exclusive, with their values."""

    def scan_head(
        self,
        keyspace: str,
        head: bytes,
        *,
        reverse: bool = False,
        snapshot: EngineSnapshot | None = None,
    ) -> EngineScan:
        """Return an iterator over keys that are `head` and a tail of `tail_bytes`, with values.

        Tables whose filters do not know the head are not read. Other keys that begin so may come.
        """

    def snapshot(self) -> EngineSnapshot:
        """Return the database as it is now."""

    def sync(self) -> None:
        """Make all that was written durable."""

    def flush(self) -> None:
        """Write all that is in memory to tables."""

    def compact(self, keyspace: str) -> None:
        """Merge all tables of a keyspace into one run."""

    def checkpoint(self, directory: str | os.PathLike[str]) -> None:
        """Make a database of its own in a directory that is empty or missing, by linking tables."""

    def backup(
        self,
        directory: str | os.PathLike[str],
        progress: Callable[[int, int], object] | None = None,
    ) -> _Verified:
        """Copy the database into a directory that is empty or missing, and verify the copy.

        `progress` is called with the bytes that were copied and checked, and with those to be.
        """

    def stats(self) -> _EngineStats:
        """Return what was counted since the database was opened."""

    def close(self) -> None:
        """Make all durable and close; snapshots, scans and transactions must be released before."""

    def __enter__(self) -> Engine: ...
    def __exit__(self, *_exception: object) -> None: ...

@final
class EngineSnapshot:
    """The database as it was at one moment."""

    @property
    def sequence(self) -> int:
        """It sees what was written up to here."""

    def release(self) -> None:
        """Let go of what only this snapshot still sees."""

    def __enter__(self) -> EngineSnapshot: ...
    def __exit__(self, *_exception: object) -> None: ...

@final
class EngineBatch:
    """Writes that become visible and durable together."""

    def put(self, keyspace: str, key: bytes, value: bytes, *, expiry_ms: int | None = None) -> None:
        """Give a key a value; with `expiry_ms`, until that moment since 1970."""

    def delete(self, keyspace: str, key: bytes) -> None:
        """Remove a key."""

    def delete_range(self, keyspace: str, start: bytes, end: bytes) -> None:
        """Remove all keys from `start` up to `end`, exclusive."""

    def write(self, *, sync: bool = True) -> int:
        """Write all; return the sequence of the last. The batch is empty afterwards."""

    def __len__(self) -> int: ...

@final
class EngineTransaction:
    """Reads and writes that happen together, or not at all: the first to commit wins."""

    def get(self, keyspace: str, key: bytes) -> bytes | None:
        """Return a key's value, with what this transaction did to it."""

    def get_for_update(self, keyspace: str, key: bytes) -> bytes | None:
        """Return a key's value, which nobody else may write before the commit."""

    def put(self, keyspace: str, key: bytes, value: bytes) -> None:
        """Give a key a value."""

    def delete(self, keyspace: str, key: bytes) -> None:
        """Remove a key."""

    def commit(self, *, sync: bool = True) -> int:
        """Write all changes, unless somebody was faster (`conflict`); return the last sequence."""

    def rollback(self) -> None:
        """End without a change."""

    def __enter__(self) -> EngineTransaction: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        _exception: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        """Commit, unless an exception is under way or it has ended."""

@final
class EngineScan:
    """Keys and values of a keyspace at one moment."""

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]: ...
    def __next__(self) -> tuple[bytes, bytes]: ...

def verify_database(
    directory: str | os.PathLike[str],
    progress: Callable[[int, int], object] | None = None,
) -> _Verified:
    """Read all of a database that is not open; return what it holds.

    `progress` is told the bytes that were read and those that there are.
    """

def truncate_damaged_log(directory: str | os.PathLike[str]) -> _TruncatedLog | None:
    """Truncate the log of a database that is not open at the first record that cannot be read, after
    copying the files concerned. None: the log is not damaged, and nothing was changed.
    """

def restore_database(
    backup: str | os.PathLike[str],
    directory: str | os.PathLike[str],
    progress: Callable[[int], object] | None = None,
) -> _Verified:
    """Copy a backup into a directory that is empty or missing; return what it holds.

    `progress` is told the bytes that were copied.
    """

def dump_file(path: str | os.PathLike[str], write: Callable[[str], object]) -> None:
    """Hand what a file of a database holds, as text, to `write`, in portions of whole lines."""

@final
class GridNode:
    def __new__(
        cls,
        *,
        url: str,
        prefix: str,
        epoch: int,
        query_partition: int,
        write_partition: int | None,
        write_partitions: int,
        node: str,
        holder: str,
        function: bytes,
        # Collections, remainder and divisor of keys' hashes -> snapshot's text, blocks of a copy.
        documents: Callable[[list[bytes], int, int], Iterator[str | bytes]],
    ) -> GridNode: ...
    def run(self, parent: int) -> None: ...
    def stop(self) -> None: ...
    def report(self) -> str: ...

class NodeError(Exception):
    """What the storage node refused: `code` for programs, `str()` for people."""

    code: str

# Numbers, texts as bytes, and lists and dicts of them.
_Reply: TypeAlias = int | float | bytes | None | list[_Reply] | dict[bytes, _Reply]

@final
class Node:
    """A storage node within this process: what `rillbase-node` answers over a connection."""

    def __new__(
        cls,
        directory: str | os.PathLike[str],
        token: str,
        *,
        durability: Literal["sync", "buffered"] = "sync",
        cache_bytes: int = ...,
        memtables_bytes: int = ...,
    ) -> Node: ...
    def execute(self, *words: bytes | str | int) -> _Reply:
        """Do a command and return its reply, or raise `NodeError`. One that waits waits here."""

    def pushed(self) -> list[_Reply]:
        """Return what subscriptions that are followed have pushed since."""

    def speaker(self) -> NodeSpeaker:
        """Return somebody else who gives commands, as another connection would."""

    def close(self) -> None:
        """End it; all that was answered is durable. Later commands raise `NodeError`."""

    def __enter__(self) -> Node: ...
    def __exit__(self, *_exception: object) -> None: ...

@final
class NodeSpeaker:
    """Who gives commands to a `Node`; one after the other, beside others."""

    def execute(self, *words: bytes | str | int) -> _Reply:
        """Do a command and return its reply, or raise `NodeError`."""

    def pushed(self) -> list[_Reply]:
        """Return what subscriptions that are followed have pushed since."""
