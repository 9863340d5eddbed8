"""The audit log: who changed what, from where, in the same transaction as the change."""

from __future__ import annotations

from dataclasses import dataclass

from foundation import request_context
from foundation.json_types import JsonObject, JsonValue
from foundation.scope import current_tenant_id
from tenants.models import AuditEntry
from tenants.principals import Principal
from tenants.webhook_events import announce

#: Names of members whose values are never logged.
_SECRET_NAMES = ("secret", "password", "token", "hash", "api_key", "authorization")
REDACTED = "[redacted]"


@dataclass(frozen=True, slots=True)
class AuditTarget:
    """The object that was changed."""

    type: str
    id: str


def record(
    principal: Principal | None,
    action: str,
    target: AuditTarget,
    *,
    before: JsonObject | None = None,
    after: JsonObject | None = None,
) -> AuditEntry:
    """Add an entry for the tenant in scope and notify its webhooks. None means the system."""
    entry = AuditEntry.objects.create(
        tenant_id=current_tenant_id(),
        action=action,
        actor=principal.actor if principal else "system",
        actor_label=principal.label if principal else "Rillbase",
        address=request_context.client_address.get() or None,
        request_id=request_context.request_id.get(),
        target_type=target.type,
        target_id=target.id,
        before=redact(before),
        after=redact(after),
    )
    announce(
        action,
        {
            "target": {"type": target.type, "id": target.id},
            "actor": entry.actor,
            "before": entry.before,
            "after": entry.after,
        },
    )
    return entry


def redact(value: JsonValue) -> JsonValue:
    """Replace the values of members with the name of a secret."""
    if isinstance(value, dict):
        return {
            name: REDACTED if inner is not None and _is_secret(name) else redact(inner)
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [redact(item) for item in value]
    return value


def _is_secret(name: str) -> bool:
    lowered = name.lower()
    return any(lowered == s or lowered.endswith(f"_{s}") for s in _SECRET_NAMES)
