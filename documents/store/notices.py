"""What an answer says besides its result: documents that were left out, since they could not be
evaluated.

A document that is too large for a query, or has a value that one of its expressions does not take,
must not end the queries of others. They continue without it. The caller learns how many of the
documents that it may read are missing, and so does the tenant's error log.
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
    """Documents that were left out of an answer, and why the first of them was."""

    not_evaluated: int = 0
    detail: str = ""

    def add(self, unevaluated: tuple[int, str | None]) -> None:
        """Count what the native code has counted."""
        count, detail = unevaluated
        self.not_evaluated += count
        self.detail = self.detail or detail or ""

    def include(self, others: Notices) -> None:
        """Count what was left out of a further part of the answer."""
        self.add((others.not_evaluated, others.detail))

    def listed(self) -> list[JsonObject]:
        """Return the notices as the API has them."""
        if not self.not_evaluated:
            return []
        return [{"code": NOT_EVALUATED, "count": self.not_evaluated, "detail": self.detail}]

    def member(self) -> bytes:
        """Return a further member of a JSON object, or nothing."""
        listed = self.listed()
        return b',"notices":' + to_json(listed) if listed else b""

    def log(self, tenant_id: UUID, collection: str, *, area: Area = Area.REQUEST) -> None:
        """Keep them in the tenant's error log."""
        if self.not_evaluated:
            counted = f"{self.not_evaluated} left out: {self.detail}"
            note(tenant_id, area, NOT_EVALUATED, place=f"collection {collection}", detail=counted)
