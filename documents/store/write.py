"""What a caller wants written, and the result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from data_plane.http import Answer
from documents.store.claims import Claim
from foundation.postgres.session import Step
from rillbase_native import Expected, Operations, Outcomes
from tenants.principals import Principal

#: For writes that only carry an idempotency key, or additional statements.
NO_OPERATIONS = Operations([])


@dataclass(frozen=True, slots=True)
class Write:
    """Operations of one caller that are answered together.

    `atomic`: all or none. Otherwise each operation is independent. `principal` None: an internal
    caller, which no access rule binds.
    """

    tenant_id: UUID
    #: The collection of those operations that name none.
    collection: str = ""
    operations: Operations = NO_OPERATIONS
    atomic: bool = True
    #: What every operation expects of its document.
    expected: Expected | None = None
    principal: Principal | None = None
    claim: Claim | None = None
    answer: Callable[[Outcomes], Answer] | None = None
    #: Statements that belong to the transaction, such as those that note how far an import is.
    also: Callable[[Outcomes], list[Step]] | None = None
    #: The source that writes this; only the collection's own may write to one that has a source.
    source_id: UUID | None = None

    @property
    def is_single(self) -> bool:
        return len(self.operations) == 1

    def collections(self) -> dict[str, str]:
        """Return the collections by the names that operations use."""
        return {name: name or self.collection for name in self.operations.collections()}

    def halves(self) -> tuple[Write, Write]:
        """Split a write whose operations are independent."""
        count = len(self.operations)
        return self._part(0, count // 2), self._part(count // 2, count)

    def _part(self, start: int, end: int) -> Write:
        return Write(
            self.tenant_id,
            self.collection,
            self.operations.part(start, end),
            atomic=False,
            principal=self.principal,
            source_id=self.source_id,
        )


@dataclass(frozen=True, slots=True)
class WriteResult:
    """The outcomes of a write, and its rendered answer if one was requested."""

    outcomes: Outcomes
    answer: Answer | None = None
