"""What a caller wants written, and what it is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from documents.store.claims import Claim
from documents.store.staging import Expected, Outcome
from foundation.http import Answer
from foundation.postgres.session import Step
from rillbase_native import Operation
from tenants.principals import Principal


@dataclass(frozen=True, slots=True)
class Line:
    """One operation, on a collection by name."""

    collection: str
    operation: Operation
    expected: Expected | None = None


@dataclass(frozen=True, slots=True)
class Write:
    """Operations of one caller that are answered together.

    `atomic`: all or none. Otherwise each operation stands for itself. `principal` None: one of our
    own parts, which no access rule binds.
    """

    tenant_id: UUID
    lines: Sequence[Line]
    atomic: bool = True
    principal: Principal | None = None
    claim: Claim | None = None
    answer: Callable[[list[Outcome]], Answer] | None = None
    #: Statements that belong to the transaction, such as those that note how far an import is.
    also: Callable[[list[Outcome]], list[Step]] | None = None

    @property
    def is_single(self) -> bool:
        return len(self.lines) == 1

    def halves(self) -> tuple[Write, Write]:
        """Split a write whose operations stand for themselves."""
        middle = len(self.lines) // 2
        first, second = self.lines[:middle], self.lines[middle:]
        return self._part(first), self._part(second)

    def _part(self, lines: Sequence[Line]) -> Write:
        return Write(self.tenant_id, lines, atomic=False, principal=self.principal)


@dataclass(frozen=True, slots=True)
class Written:
    """How a write ended: its operations' outcomes, and its answer where one was asked for."""

    outcomes: list[Outcome]
    answer: Answer | None = None
