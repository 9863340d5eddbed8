"""A caller's write, and its result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from data_plane.http import CallResponse
from documents.store.claims import RecordedStep, WriteClaim
from foundation.postgres.session import Step
from rillbase_native import Expected, Operations, Outcomes
from tenants.principals import Principal

#: For writes with only an idempotency key or additional statements.
NO_OPERATIONS = Operations([])


@dataclass(slots=True)
class WriteCall:
    """Operations of one caller with a common response. Not frozen, which would triple the time that
    creating one takes.

    `atomic`: all or none. Otherwise each operation is independent. `principal` None: an internal
    caller, to which no access rules apply.
    """

    tenant_id: UUID
    #: The collection of operations that do not name one.
    collection: str = ""
    operations: Operations = NO_OPERATIONS
    atomic: bool = True
    #: What every operation expects of its document.
    expected: Expected | None = None
    principal: Principal | None = None
    claim: WriteClaim | None = None
    answer: Callable[[Outcomes], CallResponse] | None = None
    #: Of a call that takes several transactions: what the claim records instead of the response,
    #: and what the transaction before has recorded. The write is rejected if that is no longer
    #: recorded, and `NotOneTransaction` is raised if its operations have to be divided.
    record: Callable[[Outcomes, bytes], RecordedStep] | None = None
    after: bytes | None = None
    #: What `record` has to know of this transaction besides its outcomes. A repeated call may have
    #: chosen other documents: it receives what the first one had recorded.
    step: bytes = b""
    #: Names a write that statements accompany and that has no claim: with this name, it is executed
    #: once.
    name: bytes | None = None
    #: Statements that belong to the transaction, such as those that record the progress of an
    #: import.
    also: Callable[[Outcomes], list[Step]] | None = None
    #: The source that makes the write; a collection with a source accepts only writes of that
    #: source.
    source_id: UUID | None = None

    @property
    def is_single(self) -> bool:
        return len(self.operations) == 1

    def collections(self) -> dict[str, str]:
        """Return the collections by the names that operations use."""
        return {name: name or self.collection for name in self.operations.collections()}

    def involved_collections(self) -> dict[str, str]:
        """Return them, or the collection of a call that has no further operations."""
        return self.collections() or ({"": self.collection} if self.collection else {})

    def halves(self) -> tuple[WriteCall, WriteCall]:
        """Split a write whose operations are independent."""
        count = len(self.operations)
        return self._part(0, count // 2, b"a"), self._part(count // 2, count, b"b")

    def _part(self, start: int, end: int, suffix: bytes) -> WriteCall:
        return WriteCall(
            self.tenant_id,
            self.collection,
            self.operations.part(start, end),
            atomic=False,
            principal=self.principal,
            source_id=self.source_id,
            name=None if self.name is None else self.name + suffix,
        )


@dataclass(frozen=True, slots=True)
class WriteResult:
    """The outcomes of a write, its rendered response if one was requested, and its step."""

    outcomes: Outcomes
    answer: CallResponse | None = None
    step: bytes = b""
