"""Re-checks connections whose credentials have changed according to another process. The registry
re-checks all connections several times a second. These re-checks cover only the affected
connections and start immediately. Changes that arrive during one are handled together by the next.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial

from connections.callers import ConnectionCaller
from connections.connection_registry import ConnectionRegistry
from foundation.json_types import JsonObject
from tenants.credentials import facts, jwt
from tenants.credentials.changes import CredentialChanges
from tenants.principals import PrincipalKind

log = logging.getLogger(__name__)


class CredentialRechecks:
    """The re-checks of one process."""

    def __init__(self, registry: ConnectionRegistry) -> None:
        self._registry = registry
        self._changes: CredentialChanges | None = None
        self._task: asyncio.Task[None] | None = None

    def changed(self, message: JsonObject) -> None:
        """Evict what has changed from the caches, and schedule a re-check of the affected
        connections.
        """
        change = CredentialChanges()
        change.add(message.get("subject"), message.get("name"))
        facts.evict(change)
        jwt.evict(change)
        self._changes = self._changes or CredentialChanges()
        self._changes.add(message.get("subject"), message.get("name"))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._recheck())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _recheck(self) -> None:
        while (changes := self._changes) is not None:
            self._changes = None
            try:
                await self._registry.judge(partial(concerns, changes))
            except Exception:
                # The periodic re-check repeats it.
                log.warning("changed credentials could not be read", exc_info=True)


def concerns(changes: CredentialChanges, caller: ConnectionCaller) -> bool:
    """Return whether changes may affect a caller."""
    credential, principal = caller.credential, caller.principal
    named = {
        PrincipalKind.PERSONAL_TOKEN: changes.tokens,
        PrincipalKind.SESSION: changes.sessions,
    }.get(credential.kind, changes.keys)
    return (
        credential.reference in named
        or principal.user_id in changes.users
        or caller.tenant.id in changes.tenants
    )
