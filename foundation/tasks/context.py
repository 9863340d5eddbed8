"""The context of the request that created a task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import UUID

from foundation import request_context


@dataclass(frozen=True, slots=True)
class TaskContext:
    """Travels in the message's header; `attempt` counts from 1.

    A task that is `tracked` has a row of the outbox until it ends. Tasks of beat have none, nor do
    those that a release without `handed_to` has sent.
    """

    tenant_id: UUID | None = None
    request_id: str = ""
    attempt: int = 1
    tracked: bool = False

    @classmethod
    def of(cls, header: object) -> TaskContext:
        """Read the header; messages of beat have no header."""
        if not isinstance(header, Mapping):
            return cls()
        tenant = header.get("tenant_id")
        return cls(
            UUID(str(tenant)) if tenant else None,
            str(header.get("request_id") or ""),
            int(header.get("attempt") or 1),
            bool(header.get("tracked")),
        )

    @contextmanager
    def entered(self, task_name: str) -> Iterator[None]:
        """Add tenant, request and task to log lines and outbox rows of the block."""
        values = {
            request_context.tenant_id: str(self.tenant_id or ""),
            request_context.request_id: self.request_id,
            request_context.principal: f"task:{task_name}",
        }
        tokens = {variable: variable.set(value) for variable, value in values.items()}
        try:
            yield
        finally:
            for variable, token in tokens.items():
                variable.reset(token)
