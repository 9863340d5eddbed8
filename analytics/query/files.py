"""The files that a query reads. No Django here: Spark workers use this module too."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from analytics.rows.file_store import StoredPath
from analytics.rows.keys import Key


@dataclass(frozen=True, slots=True)
class StateSelector:
    """The states that a query accepts: the newest, unless one of the first three fields is set."""

    #: Includes all commits that are older than this, in seconds.
    freshness_s: float | None = None
    state: int | None = None
    as_of: datetime.datetime | None = None
    #: The authority, regardless of its age.
    any: bool = False
    #: The earliest state accepted.
    since: int = 0


#: The number of an upload, and the index of a part in it.
Part: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class QueryFile:
    """A file that a query may have to read."""

    path: StoredPath
    stage: str
    view: str
    rows: int
    lowest: Key
    highest: Key
    #: For a segment, or its list of keys.
    part: Part | None = None


@dataclass(frozen=True, slots=True)
class IdPlan:
    """The files of an ID-key at a state: its table's, and lists of keys that are not yet in it."""

    authority: Sequence[QueryFile]
    later: Sequence[QueryFile]
    #: In the order of their uploads.
    lists: Sequence[QueryFile]

    @property
    def count(self) -> int:
        """The number of keys in the table's files, which contain each key once."""
        primary = [file for file in self.authority if file.view == ""]
        return sum(file.rows for file in (*primary, *self.later))


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """The files of a state of one table: the authority, then all later files in order."""

    state: int
    #: Minimum age in seconds of commits that the state includes completely.
    freshness_s: float
    authority: list[QueryFile] = field(default_factory=list)
    later: list[QueryFile] = field(default_factory=list)
    #: For the ID-keys that the table uses.
    id_keys: Mapping[str, IdPlan] = field(default_factory=dict)
