"""How the web server's process is started, whoever starts it."""

from __future__ import annotations

import sys
from pathlib import Path

WEBSOCKET_MAX_BYTES = 32 * 1024 * 1024
_PLATFORM = Path(__file__).resolve().parents[1]


def web_argv(host: str, port: int, *, workers: int, grace_s: int) -> list[str]:
    """Return the command. Asked to end, it waits `grace_s` for requests that are under way."""
    argv = [sys.executable, "-m", "uvicorn", "rillbase_server.asgi:application"]
    argv += ["--app-dir", str(_PLATFORM)]
    argv += ["--host", host, "--port", str(port), "--workers", str(workers)]
    argv += ["--ws", "websockets-sansio", "--ws-max-size", str(WEBSOCKET_MAX_BYTES)]
    argv += ["--no-access-log", "--no-server-header"]
    # The edge judges proxies' headers by RILLBASE_TRUSTED_PROXIES.
    argv += ["--no-proxy-headers"]
    argv += ["--timeout-graceful-shutdown", str(grace_s)]
    return argv
