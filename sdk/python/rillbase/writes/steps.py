"""Operations that are collected before they are sent together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from rillbase.writes.calls import WriteOptions, WriteStep, insertion, step


@dataclass(slots=True)
class Steps:
    """Operations on one collection."""

    collection: str
    gathered: list[WriteStep] = field(default_factory=list)

    def insert(self, document: Mapping[str, object]) -> Self:
        """Insert a document; without an `_id` it gets an `ObjectId`.

        Example:
            todos.bulk(lambda steps: steps.insert({"_id": "call", "title": "Call Ada"}))
            print(todos.count())  # 4
        """
        return self._add(insertion(self.collection, document))

    def replace(
        self, identity: object, document: Mapping[str, object], *, if_version: int | None = None
    ) -> Self:
        """Create or replace a document.

        Example:
            todos.bulk(lambda steps: steps.replace("milk", {"title": "Buy oat milk"}))
            print(todos.get("milk").document["title"])  # Buy oat milk
        """
        options = WriteOptions(if_version=if_version)
        return self._add(step("replace", self.collection, identity, document, options))

    def update(
        self,
        identity: object,
        update: Mapping[str, object],
        *,
        upsert: bool = False,
        array_filters: Sequence[Mapping[str, object]] | None = None,
        if_version: int | None = None,
    ) -> Self:
        """Change a document with operators.

        Example:
            todos.bulk(lambda steps: steps.update("milk", {"$inc": {"rank": 1}}))
            print(todos.get("milk").document["rank"])  # 2
        """
        options = WriteOptions(upsert=upsert, array_filters=array_filters, if_version=if_version)
        return self._add(step("update", self.collection, identity, update, options))

    def delete(self, identity: object, *, if_version: int | None = None) -> Self:
        """Delete a document.

        Example:
            todos.bulk(lambda steps: steps.delete("milk").delete("rent"))
            print(todos.count())  # 1
        """
        options = WriteOptions(if_version=if_version)
        return self._add(step("delete", self.collection, identity, options=options))

    def _add(self, one: WriteStep) -> Self:
        self.gathered.append(one)
        return self


@dataclass(slots=True)
class Transaction:
    """Operations on any collections; all of them succeed or none."""

    gathered: list[WriteStep] = field(default_factory=list)

    def collection(self, name: str) -> Steps:
        """Return the operations on a collection, which run in the order of the calls.

        Example:
            db.transaction(lambda steps: steps.collection("users").delete("ada"))
            print(db.collection("users").get("ada"))  # None
        """
        return Steps(name, self.gathered)
