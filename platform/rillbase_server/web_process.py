"""The command of the web server's process."""

from __future__ import annotations

import platform
import sys
from pathlib import Path

#: Protocols with limits that apply before authentication.
HTTP_PROTOCOL = "rillbase_server.transport.http_protocol:HttpProtocol"
WEBSOCKET_PROTOCOL = "rillbase_server.transport.websocket_protocol:WebSocketProtocol"
#: Python's allocator returns memory in arenas of a megabyte, nearly all of which stay in use after
#: a burst of connections. glibc's returns every free page (transport/allocator.py), and costs no
#: more CPU time.
ENVIRONMENT = {"PYTHONMALLOC": "malloc"} if platform.libc_ver()[0] == "glibc" else {}
_PLATFORM = Path(__file__).resolve().parents[1]


def web_argv(host: str, port: int, *, workers: int, grace_s: int) -> list[str]:
    """Return the command, which needs `ENVIRONMENT`.

    On shutdown, the server waits up to `grace_s` for requests in progress.
    """
    argv = [sys.executable, "-m", "uvicorn", "rillbase_server.asgi:application"]
    argv += ["--app-dir", str(_PLATFORM)]
    argv += ["--host", host, "--port", str(port), "--workers", str(workers)]
    argv += ["--http", HTTP_PROTOCOL, "--ws", WEBSOCKET_PROTOCOL]
    argv += ["--no-access-log", "--no-server-header"]
    # The edge handles proxies' headers, according to RILLBASE_TRUSTED_PROXIES.
    argv += ["--no-proxy-headers"]
    argv += ["--timeout-graceful-shutdown", str(grace_s)]
    return argv
