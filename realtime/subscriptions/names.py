"""The keys of the records in Valkey, and the public ids of subscriptions."""

from __future__ import annotations

from uuid import UUID

#: The message that a member has ended a subscription.
ENDED = "subscription.ended"
_ROOT = "{rillbase}:live:"
#: A process that does not report for this long counts as gone, with its subscriptions.
RECORD_LIFETIME_S = 6
#: Maximum number of subscriptions per tenant that a process reports.
MAX_SHOWN = 1_000


def processes(tenant_id: UUID) -> str:
    """Return the sorted set of processes with subscriptions of a tenant, by the time of their
    report.
    """
    return f"{_ROOT}{tenant_id}"


def record(tenant_id: UUID, process: str) -> str:
    """Return the key of a process's report on a tenant's subscriptions."""
    return f"{_ROOT}{tenant_id}:{process}"


def kills(process: str) -> str:
    """Return the set of subscriptions that a process has been asked to end."""
    return f"{_ROOT}kill:{process}"


def public_id(process: str, subscription: str) -> str:
    """Return a subscription's public id."""
    return f"{process}.{subscription}"


def split(public: str) -> tuple[str, str] | None:
    """Return process and subscription of a public id; None if it is not valid."""
    process, point, subscription = public.partition(".")
    valid = point and process.isalnum() and subscription.isalnum() and public.isascii()
    return (process, subscription) if valid else None
