"""The names of the records in Valkey, and of a subscription among all of them."""

from __future__ import annotations

from uuid import UUID

#: The message that a member has ended a subscription.
ENDED = "subscription.ended"
_ROOT = "{rillbase}:live:"
#: A process that says nothing for so long is gone, and its subscriptions with it.
RECORD_LIFETIME_S = 6
#: More of one tenant's subscriptions than these are not shown by a process.
MAX_SHOWN = 1_000


def processes(tenant_id: UUID) -> str:
    """Return the sorted set of processes with subscriptions of a tenant, by when they said so."""
    return f"{_ROOT}{tenant_id}"


def record(tenant_id: UUID, process: str) -> str:
    """Return the key of what a process tells of a tenant's subscriptions."""
    return f"{_ROOT}{tenant_id}:{process}"


def kills(process: str) -> str:
    """Return the set of subscriptions that a process has been asked to end."""
    return f"{_ROOT}kill:{process}"


def joined(process: str, subscription: str) -> str:
    """Return a subscription's public id."""
    return f"{process}.{subscription}"


def split(public: str) -> tuple[str, str] | None:
    """Return process and subscription of a public id; None: it is none."""
    process, point, subscription = public.partition(".")
    valid = point and process.isalnum() and subscription.isalnum() and public.isascii()
    return (process, subscription) if valid else None
