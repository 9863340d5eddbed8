"""Removes the sources of a tenant that is being deleted."""

from __future__ import annotations

import asyncio
import logging
from uuid import UUID

from sources.following.removal import try_upstream
from sources.models import Source
from sources.upstream.slot import statements_that_drop

logger = logging.getLogger(__name__)

ALIAS = "relay"


def clean(tenant_id: UUID) -> None:
    """Remove the tenant's sources and, where reachable, what they created upstream.

    An unreachable database does not delay the deletion of the tenant.
    """
    for row in Source.unscoped.using(ALIAS).filter(tenant_id=tenant_id):
        if asyncio.run(try_upstream(row)) is not None:
            logger.warning(
                "a slot and a publication remain in a tenant's database",
                extra={"source": str(row.pk), "drop": " ".join(statements_that_drop(row.pk))},
            )
        row.delete(using=ALIAS)
