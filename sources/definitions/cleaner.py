"""A tenant's sources go with the tenant."""

from __future__ import annotations

import asyncio
import logging
from uuid import UUID

from sources.following.removal import try_upstream
from sources.models import Source

logger = logging.getLogger(__name__)

ALIAS = "relay"


def clean(tenant_id: UUID) -> None:
    """Remove the tenant's sources, and what they have made elsewhere as far as it can be reached.

    A database that is away does not keep a tenant's data here.
    """
    for row in Source.unscoped.using(ALIAS).filter(tenant_id=tenant_id):
        failure = asyncio.run(try_upstream(row))
        if failure:
            logger.warning("a slot was left behind", extra={"source": str(row.pk)})
        row.delete(using=ALIAS)
