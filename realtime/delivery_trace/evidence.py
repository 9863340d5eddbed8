"""What is known about one version of a document and one subscription, gathered on request.

| from | what |
|---|---|
| the documents | the newest version, with its content |
| the outbox | which transaction committed a version, and when; kept for about a minute |
| the marks | when that transaction was published |
| the feed | which position of the storage node's log it has published, instead of these two |
| the write stream | the entry itself with the content at that time; kept for seconds |
| filter and rule | why they match that content, or do not |
| the hub | what it showed and sent, as far as it remembers |
"""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import cast

from documents.outbox.entries import Image, MalformedEntry, StreamEntryKind, decode
from documents.outbox.events import stream
from documents.store.facts import CollectionFacts
from foundation import event_server
from foundation.json_types import JsonObject
from realtime.delivery_trace import stored_versions
from realtime.delivery_trace.clocks import valkey_ahead_ms
from realtime.delivery_trace.stored_versions import CurrentDocument, FeedProgress, OutboxRow
from realtime.grid.layout import GridEpoch
from realtime.hub.logs import log_entries
from rillbase_native import Filter, write_partition

#: Maximum number of stream entries to search.
ENTRIES, PAGE = 20_000, 500
#: Tolerance for differences between a writer's clock and Valkey's, and for late marks.
SLACK_MS = 5_000


@dataclass(frozen=True, slots=True)
class StreamEntry:
    """A version's entry of a write stream."""

    entry_id: str
    image: Image

    @property
    def at_ms(self) -> int:
        return int(self.entry_id.partition("-")[0])


@dataclass(frozen=True, slots=True)
class Clause:
    """The result of a filter for the content."""

    explanation: JsonObject
    #: How the index finds such queries, by which paths, and whether it finds them for the document.
    reach: tuple[str, list[str], bool]

    @property
    def matches(self) -> bool | None:
        matches = self.explanation["matches"]
        return matches if isinstance(matches, bool) else None

    @classmethod
    def of(cls, condition: Filter, body: bytes, now_ms: int) -> Clause:
        explanation = cast("JsonObject", json.loads(condition.explain(body, now_ms)))
        return cls(explanation, condition.reach(body))


@dataclass(frozen=True, slots=True)
class TracedDocument:
    """One document, identified by its collection and key."""

    collection: CollectionFacts
    key: bytes

    def image(self, raw: bytes) -> Image | None:
        """Parse an entry of a write stream, if it is of this document."""
        if self.key not in raw:
            return None
        try:
            entry = decode(raw)
        except MalformedEntry:
            return None
        if not isinstance(entry, Image) or entry.key != self.key:
            return None
        its = (entry.tenant_id, entry.collection_id)
        return entry if its == (self.collection.tenant_id, self.collection.id) else None


@dataclass(frozen=True, slots=True)
class TracedVersion:
    """What the database and the streams know of a version, before the hub is queried."""

    key: bytes
    version: int
    xid: int | None
    #: Its content, if filter and rule match it.
    body: bytes | None
    #: When the document was created and when this version was written, if a stream has it.
    times_ms: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Subject:
    """The subject of a question: a subscription, or a hypothetical subscriber."""

    collection: CollectionFacts
    filter: Filter
    #: The access rule with the user's claims; None: no rule applies to the user, or it denies
    #: everything.
    rule: Filter | None
    is_ruled: bool
    grid: GridEpoch
    #: Returns what a hub knows about a version.
    ask_hub: Callable[[TracedVersion], Awaitable[JsonObject]]

    def matches(self, body: bytes, now_ms: int) -> bool:
        """Return whether filter and rule match; an expression that cannot be evaluated does not
        match.
        """
        if self.is_ruled and self.rule is None:
            return False
        condition = self.filter if self.rule is None else self.filter.and_(self.rule)
        matches: object = json.loads(condition.explain(body, now_ms))["matches"]
        return matches is True


@dataclass(frozen=True, slots=True)
class Evidence:
    """All evidence."""

    version: int | None
    partition: int
    stored: CurrentDocument | None
    row: OutboxRow | None
    entry: StreamEntry | None
    #: The content of the version; None if it is no longer known, or if it is a deletion.
    body: bytes | None
    is_deletion: bool
    #: The result of the subscriber's filter; None: the content is not known.
    filter: Clause | None
    #: The result of the access rule; None: no rule binds the subscriber, or the content is unknown.
    rule: Clause | None
    #: Whether an access rule binds the subscriber.
    is_ruled: bool
    #: Whether the version before matched filter and rule; None: not known.
    matched_before: bool | None
    #: What the hub knows.
    hub: JsonObject
    #: How far Valkey's clock, which dates entries and what the hub knows, is ahead of the one that
    #: dates everything else: the database's or the storage node's.
    valkey_ahead_ms: float = 0.0
    #: None: the collection is in PostgreSQL.
    feed: FeedProgress | None = None


async def gather(subject: Subject, key: bytes, version: int | None) -> Evidence:
    """Gather the evidence; raise `NotFound`, or the errors of unavailable servers."""
    collection = subject.collection
    versions = await stored_versions.read(collection, key, version, subject.grid.installation)
    stored, rows = versions.newest, versions.rows
    if version is None:
        known = [stored.version] if stored is not None else []
        version = max([*known, *(row.version for row in rows)], default=None)
    row = next((row for row in rows if row.version == version), None)
    partition = write_partition(key, subject.grid.write_partitions)
    entries, ahead_ms = dict[int, StreamEntry](), 0.0
    if version is not None:
        ahead_ms = await valkey_ahead_ms(collection)
        written_ms = _time_of_write_ms(version, stored, row)
        since_ms = None if written_ms is None else written_ms - SLACK_MS
        name = stream(
            subject.grid.installation, subject.grid.epoch, partition, subject.grid.backend
        )
        entries = await _in_stream(name, since_ms, TracedDocument(collection, key))
    entry = entries.get(version or 0)
    body, is_deletion = _content(version, stored, entry)
    now_ms = time.time_ns() // 1_000_000
    matches = body is not None and subject.matches(body, now_ms)
    xid = _transaction(version, stored, row, entry)
    known_of = TracedVersion(
        key,
        version or 0,
        xid,
        body if matches else None,
        None if entry is None else (entry.image.created_ms, entry.image.written_us // 1000),
    )
    return Evidence(
        version=version,
        partition=partition,
        stored=stored,
        row=row,
        entry=entry,
        body=body,
        is_deletion=is_deletion,
        filter=None if body is None else Clause.of(subject.filter, body, now_ms),
        rule=_rule(subject, body, now_ms),
        is_ruled=subject.is_ruled,
        matched_before=_before(subject, entries.get((version or 0) - 1), now_ms),
        hub=await subject.ask_hub(known_of),
        valkey_ahead_ms=ahead_ms,
        feed=versions.feed,
    )


def _time_of_write_ms(
    version: int, stored: CurrentDocument | None, row: OutboxRow | None
) -> int | None:
    """Return when a version was written, if there is a record of it beside the stream."""
    if row is not None:
        return row.committed_ms
    is_newest = stored is not None and stored.version == version
    return stored.updated_ms if stored is not None and is_newest else None


def _transaction(
    version: int | None,
    stored: CurrentDocument | None,
    row: OutboxRow | None,
    entry: StreamEntry | None,
) -> int | None:
    """Return the transaction that wrote a version, if it is recorded."""
    if row is not None:
        return row.xid
    if entry is not None:
        return entry.image.xid
    return stored.xid if stored is not None and stored.version == version else None


async def _in_stream(
    name: str, since_ms: int | None, document: TracedDocument
) -> dict[int, StreamEntry]:
    """Return the entries of the document that a write stream still has, by version."""
    first = "-" if since_ms is None else str(since_ms)
    last, by_version = "+", dict[int, StreamEntry]()
    for _ in range(0, ENTRIES, PAGE):
        reply = await event_server.wire().call("XREVRANGE", name, last, first, "COUNT", PAGE)
        entries = log_entries(reply)
        for entry_id, raw in entries:
            image = document.image(raw)
            if image is not None and image.version not in by_version:
                by_version[image.version] = StreamEntry(entry_id, image)
        if len(entries) < PAGE:
            break
        last = f"({entries[-1][0]}"
    return by_version


def _content(
    version: int | None, stored: CurrentDocument | None, entry: StreamEntry | None
) -> tuple[bytes | None, bool]:
    """Return the content of a version, and whether it was a deletion."""
    if stored is not None and stored.version == version:
        return stored.body, stored.body is None
    if entry is None or entry.image.kind is StreamEntryKind.SUPERSEDED:
        return None, False
    if entry.image.kind is StreamEntryKind.DELETE:
        return None, True
    return entry.image.body, False


def _rule(subject: Subject, body: bytes | None, now_ms: int) -> Clause | None:
    if body is None or subject.rule is None:
        return None
    return Clause.of(subject.rule, body, now_ms)


def _before(subject: Subject, entry: StreamEntry | None, now_ms: int) -> bool | None:
    if entry is None or entry.image.kind is StreamEntryKind.SUPERSEDED:
        return None
    return entry.image.kind is StreamEntryKind.PUT and subject.matches(entry.image.body, now_ms)
