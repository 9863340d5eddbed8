"""Invalidate the state of streams and clients after a backup was restored.

A restored database reuses transaction ids and versions. Without this, subscribers would mistake new
changes for old ones and ignore them.
"""

from __future__ import annotations

import asyncio

from django.core.management.base import BaseCommand

from documents.outbox.database import BEGIN, COMMIT, DURABLE, close_relay_pool, relay_pool
from documents.outbox.installation import RAISE


class Command(BaseCommand):
    help = "Raise the installation epoch. Run it once after restoring a backup."
    requires_system_checks: list[str] = []

    def handle(self, *args: object, **options: object) -> None:
        self.stdout.write(f"installation epoch {asyncio.run(_raise())}")


async def _raise() -> int:
    # The role's commits are asynchronous, but this one must survive a crash.
    steps = [BEGIN, DURABLE, RAISE, COMMIT]
    async with relay_pool().session() as session:
        raised = (await session.run([(step, ()) for step in steps]))[2]
    await close_relay_pool()
    return raised.integer(0, 0)
