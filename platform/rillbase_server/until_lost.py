"""Serving until stopped, or until what is served says that it can do nothing any more."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial

import uvicorn

from foundation.asgi import App
from rillbase_server.web_process import HTTP_PROTOCOL


def serve(
    build: Callable[[Callable[[], None]], App], *, host: str, port: int, grace_s: int
) -> None:
    """Serve what `build` makes, on the loop that it will run on.

    `build` is given a function to call when nothing can be started any more; then this process
    ends with 1, and its supervisor starts it again.
    """
    gave_up = False

    def give_up() -> None:
        nonlocal gave_up
        gave_up = server.should_exit = True

    server = uvicorn.Server(
        uvicorn.Config(
            partial(build, give_up),
            factory=True,
            host=host,
            port=port,
            log_config=None,
            access_log=False,
            http=HTTP_PROTOCOL,
            ws="none",
            server_header=False,
            timeout_graceful_shutdown=grace_s,
        )
    )
    server.run()
    if gave_up:
        sys.exit(1)
