"""Celery tasks of webhooks."""

from __future__ import annotations

from uuid import UUID

from foundation.tasks import task
from tenants.webhooks.delivery import work_off
from tenants.webhooks.events import WORK_TASK
from tenants.webhooks.handshake import HANDSHAKE_TASK, shake_hands


@task(name=WORK_TASK)
def work(*, tenant: str, webhook: str) -> None:
    """Make a webhook's due deliveries."""
    work_off(UUID(tenant), UUID(webhook))


@task(name=HANDSHAKE_TASK)
def handshake(*, tenant: str, webhook: str, url: str, number: int) -> None:
    """Ask a receiver whether it wants deliveries."""
    shake_hands(UUID(tenant), UUID(webhook), url, number)
