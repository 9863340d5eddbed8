"""Starts and stops the parts that live as long as the server's event loop.

Connections and background tasks are closed before the loop, so no pending response or statement
outlives it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence

from foundation.asgi import App, Receive, Scope, Send

log = logging.getLogger(__name__)

Step = Callable[[], Awaitable[None]]


class Lifespan:
    """Runs `start` in order when the server starts, and `stop` in order when it ends."""

    def __init__(self, app: App, *, start: Sequence[Step] = (), stop: Sequence[Step] = ()) -> None:
        self._app = app
        self._start = start
        self._stop = stop

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            await self._app(scope, receive, send)
            return
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                for step in self._start:
                    await step()
                await send({"type": "lifespan.startup.complete"})
            else:
                for step in self._stop:
                    await _stop_part(step)
                await send({"type": "lifespan.shutdown.complete"})
                return


async def _stop_part(step: Step) -> None:
    """Stop one part; its failure must not prevent the others from stopping."""
    try:
        await step()
    except Exception:
        log.exception("an error occurred during shutdown")
