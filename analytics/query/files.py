"""What a query reads, as files. Nothing here knows Django: workers of Spark are told of it, too."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from analytics.rows.file_store import StoredPath
from analytics.rows.keys import Key


@dataclass(frozen=True, slots=True)
class StateSelector:
    """The states that a query accepts. At most one of the first three is set, else the newest."""

    #: Seconds. All that was committed longer ago is seen.
    freshness_s: float | None = None
    state: int | None = None
    as_of: datetime.datetime | None = None
    #: The authority, whatever it lacks.
    any: bool = False
    #: No earlier state than this.
    since: int = 0


#: The number of an upload, and the place of a part in it.
Part: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class File:
    """A file that a query may have to read."""

    path: StoredPath
    stage: str
    view: str
    rows: int
    lowest: Key
    highest: Key
    #: Of a segment, or of the keys that lie beside it.
    part: Part | None = None


@dataclass(frozen=True, slots=True)
class IdPlan:
    """What stands for an ID-key at a state: files of its table, and keys whose ids are in none."""

    authority: Sequence[File]
    later: Sequence[File]
    #: In the order of their uploads.
    lists: Sequence[File]

    @property
    def count(self) -> int:
        """How many keys the files have: each has them once."""
        primary = [file for file in self.authority if file.view == ""]
        return sum(file.rows for file in (*primary, *self.later))


@dataclass(frozen=True, slots=True)
class Plan:
    """What stands for a state of one table: the authority, then all later files in order."""

    state: int
    #: For how many seconds all that was committed has been in the state, at least.
    freshness_s: float
    authority: list[File] = field(default_factory=list)
    later: list[File] = field(default_factory=list)
    #: Of the ID-keys that the table has to do with.
    id_keys: Mapping[str, IdPlan] = field(default_factory=dict)
