"""Notices of a response: documents that are missing because they could not be evaluated. A document
that is too large for a query, or has a value that an expression does not accept, must not make
queries fail. They continue without it. The response and the tenant's error log report how many of
the documents that the caller may read are missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from foundation.api.rendering import to_json
from foundation.json_types import JsonObject
from tenants.error_log import Area, note

NOT_EVALUATED = "documents_not_evaluated"


@dataclass(slots=True)
class Notices:
    """The number of documents missing from a response, and the reason for the first."""

    not_evaluated: int = 0
    detail: str = ""

    def add(self, unevaluated: tuple[int, str | None]) -> None:
        """Add the counts of the native code."""
        count, detail = unevaluated
        self.not_evaluated += count
        self.detail = self.detail or detail or ""

    def include(self, others: Notices) -> None:
        """Add the counts of a further part of the response."""
        self.add((others.not_evaluated, others.detail))

    def listed(self) -> list[JsonObject]:
        """Return the notices as in the API."""
        if not self.not_evaluated:
            return []
        return [{"code": NOT_EVALUATED, "count": self.not_evaluated, "detail": self.detail}]

    def member(self) -> bytes:
        """Return a further member of a JSON object, or nothing."""
        listed = self.listed()
        return b',"notices":' + to_json(listed) if listed else b""

    def log(self, tenant_id: UUID, collection: str, *, area: Area = Area.REQUEST) -> None:
        """Record them in the tenant's error log."""
        if self.not_evaluated:
            counted = f"{self.not_evaluated} left out: {self.detail}"
            note(tenant_id, area, NOT_EVALUATED, place=f"collection {collection}", detail=counted)
