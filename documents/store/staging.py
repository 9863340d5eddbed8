"""Operations applied to rows in memory: what a group of writes will leave behind.

Pure: rows, operations and a moment in, changes and errors out. The group (`documents.store.group`)
has locked the rows before and writes the changes afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from documents.refusals import as_api_error
from documents.store.access import Access
from documents.store.facts import CollectionFacts
from foundation.errors import ApiError, FieldProblem, NotFound, PreconditionFailed
from rillbase_native import Filter, Image, Operation, QueryError

#: An entry of an index: its number, key, whether it sorts, whether it is enforced.
Entry = tuple[int, bytes, bool, bool]
#: The bytes of a collection's id, and a document's key.
Place = tuple[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Expected:
    """What `If-Match` and `If-None-Match` ask of the document."""

    versions: frozenset[int] | None = None
    present: bool = False
    absent: bool = False

    def check(self, version: int, *, present: bool) -> None:
        if self.absent and present:
            raise PreconditionFailed("The document exists.")
        if (self.present or self.versions is not None) and not present:
            raise PreconditionFailed("There is no such document.")
        if self.versions is not None and version not in self.versions:
            raise PreconditionFailed(f"The document is at version {version}.")


@dataclass(frozen=True, slots=True)
class Item:
    """One operation on one collection."""

    collection: CollectionFacts
    operation: Operation
    place: Place
    access: Access | None = None
    expected: Expected | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A document as it was locked; `body` None: a tombstone."""

    version: int
    body: bytes | None
    created_ms: int
    #: The same moment as the database keeps it.
    created_raw: bytes


@dataclass(frozen=True, slots=True)
class Change:
    """One operation's effect; `body` None: the document is gone."""

    operation: Operation
    version: int
    body: bytes | None
    created_ms: int
    updated_ms: int
    #: Whether the document was not there before.
    created: bool


Outcome = Change | ApiError


@dataclass(slots=True)
class Staged:
    """A document as the group leaves it."""

    key: bytes
    key_hash: int
    version: int
    body: bytes | None
    #: BSON of the `_id` alone, once the document is gone.
    deleted_id: bytes | None
    created_ms: int
    #: None: from now.
    created_raw: bytes | None
    added: set[Entry] = field(default_factory=set)
    removed: set[Entry] = field(default_factory=set)

    def after(self, image: Image) -> tuple[set[Entry], set[Entry]]:
        """Return the entries to add and to remove once one more image has come on top."""
        added, removed = set(self.added), set(self.removed)
        for entry in image.removed:
            (added.discard if entry in added else removed.add)(entry)
        for entry in image.added:
            (removed.discard if entry in removed else added.add)(entry)
        return added, removed


class Stage:
    """The rows of one group while its writes are applied, one after the other."""

    def __init__(self, rows: Mapping[Place, Row], floors: Mapping[bytes, int], now_ms: int) -> None:
        self._rows = rows
        self._floors = floors
        self.now_ms = now_ms
        self.staged: dict[Place, Staged] = {}

    def apply_all(self, items: Sequence[Item]) -> list[Outcome]:
        """Apply operations of which each may fail alone."""
        return [self._outcome(item) for item in items]

    def apply_atomically(self, items: Sequence[Item]) -> list[Outcome]:
        """Apply all or none. The error names the operation's place among several."""
        before = {item.place: self.staged.get(item.place) for item in items}
        changes: list[Outcome] = []
        for number, item in enumerate(items):
            try:
                changes.append(self._apply(item))
            except ApiError as refused:
                self._put_back(before)
                raise _at(refused, number if len(items) > 1 else None) from None
        return changes

    def _put_back(self, before: Mapping[Place, Staged | None]) -> None:
        for place, staged in before.items():
            if staged is None:
                self.staged.pop(place, None)
            else:
                self.staged[place] = staged

    def _outcome(self, item: Item) -> Outcome:
        try:
            return self._apply(item)
        except ApiError as refused:
            return refused

    def _apply(self, item: Item) -> Change:
        place, operation = item.place, item.operation
        known = self.staged.get(place)
        row = self._rows.get(place)
        body, version = self._current(place, known, row)
        if item.expected is not None:
            item.expected.check(version, present=body is not None)
        if operation.if_version is not None:
            Expected(frozenset((operation.if_version,))).check(version, present=body is not None)
        image = self._image(item, body)
        staged = self._stage(place[1], image, known, row, version)
        self.staged[place] = staged
        return Change(
            operation,
            staged.version,
            staged.body,
            staged.created_ms,
            self.now_ms,
            created=body is None,
        )

    def _current(
        self, place: Place, known: Staged | None, row: Row | None
    ) -> tuple[bytes | None, int]:
        if known is not None:
            return known.body, known.version
        if row is not None:
            return row.body, row.version
        return None, self._floors[place[0]]

    def _image(self, item: Item, body: bytes | None) -> Image:
        create, update, delete = _rules(item, body, self.now_ms)
        try:
            return item.operation.apply(
                item.collection.definition, body, self.now_ms, create, update, delete
            )
        except QueryError as refused:
            raise as_api_error(refused) from None

    def _stage(
        self, key: bytes, image: Image, known: Staged | None, row: Row | None, version: int
    ) -> Staged:
        created_ms, created_raw = self._created(known, row)
        if known is None:
            added, removed = set(image.added), set(image.removed)
        else:
            added, removed = known.after(image)
        body = image.body
        return Staged(
            key=key,
            key_hash=image.key_hash,
            version=version + 1,
            body=body,
            deleted_id=image.id_bson if body is None else None,
            created_ms=created_ms,
            created_raw=created_raw,
            added=added,
            removed=removed,
        )

    def _created(self, known: Staged | None, row: Row | None) -> tuple[int, bytes | None]:
        """A document that comes into being, also again, is created now."""
        if known is not None and known.body is not None:
            return known.created_ms, known.created_raw
        if known is None and row is not None and row.body is not None:
            return row.created_ms, row.created_raw
        return self.now_ms, None


def _rules(
    item: Item, body: bytes | None, now_ms: int
) -> tuple[Filter | None, Filter | None, Filter | None]:
    """Return the rules that the native code tests; raise where an action is denied outright.

    What the caller may not read does not exist for it: changing it is 404 like any absent one.
    """
    access, operation = item.access, item.operation
    if access is None:
        return None, None, None
    if operation.kind == "insert" or body is None:
        if operation.kind == "insert" or operation.upsert:
            return access.require("create"), None, None
        raise NotFound("There is no such document.")
    action = "delete" if operation.kind == "delete" else "update"
    readable = access.filters.get("read")
    if operation.kind != "replace" and (readable is None or not readable.matches(body, now_ms)):
        raise NotFound("There is no such document.")
    rule = access.require(action)
    return None, rule, rule


def _at(refused: ApiError, number: int | None) -> ApiError:
    """Say which of several operations was refused."""
    if number is None:
        return refused
    prefix = f"/operations/{number}"
    problems = [
        FieldProblem(prefix + problem.pointer, problem.code, problem.detail)
        for problem in refused.errors
    ] or [FieldProblem(prefix, refused.code, refused.detail or refused.title)]
    return type(refused)(refused.detail, errors=problems, headers=refused.headers)


def entries_of(
    staged: Iterable[tuple[Place, Staged]],
) -> tuple[list[tuple[Entry, bytes]], list[tuple[Entry, bytes]]]:
    """Return all entries to add and to remove, each with its document's key."""
    added, removed = [], []
    for (_, key), document in staged:
        added += [(entry, key) for entry in document.added]
        removed += [(entry, key) for entry in document.removed]
    return added, removed
