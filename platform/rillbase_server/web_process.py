"""Starts the web server's process, for every way of starting it."""

from __future__ import annotations

import platform
import sys
from pathlib import Path

#: Our own protocols, with bounds that hold before anybody has authenticated.
HTTP_PROTOCOL = "rillbase_server.transport.http_protocol:HttpProtocol"
WEBSOCKET_PROTOCOL = "rillbase_server.transport.websocket_protocol:WebSocketProtocol"
#: Python's own allocator returns memory by the megabyte, and after a burst of connections nearly
#: each still has an object in use. glibc's returns every free page (transport/allocator.py);
#: measured, requests and events take as much CPU time with it.
ENVIRONMENT = {"PYTHONMALLOC": "malloc"} if platform.libc_ver()[0] == "glibc" else {}
_PLATFORM = Path(__file__).resolve().parents[1]


def web_argv(host: str, port: int, *, workers: int, grace_s: int) -> list[str]:
    """Return the command, which needs `ENVIRONMENT`.

    Asked to end, the server waits `grace_s` for requests that are under way.
    """
    argv = [sys.executable, "-m", "uvicorn", "rillbase_server.asgi:application"]
    argv += ["--app-dir", str(_PLATFORM)]
    argv += ["--host", host, "--port", str(port), "--workers", str(workers)]
    argv += ["--http", HTTP_PROTOCOL, "--ws", WEBSOCKET_PROTOCOL]
    argv += ["--no-access-log", "--no-server-header"]
    # The edge judges proxies' headers by RILLBASE_TRUSTED_PROXIES.
    argv += ["--no-proxy-headers"]
    argv += ["--timeout-graceful-shutdown", str(grace_s)]
    return argv
