"""Serves the application with uvicorn in a thread of the test process."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from tests.waiting import wait_until

#: The event loops of the servers in this process, by base URL.
LOOPS: dict[str, asyncio.AbstractEventLoop] = {}


class Server(uvicorn.Server):
    """A server, whose event loop is available once it has started."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self.loop = asyncio.get_running_loop()
        await super().startup(sockets)


#: How often the server writes its logs and counts usage, for which tests would wait for seconds.
WRITE_S = 0.25


@contextmanager
def running_server() -> Iterator[str]:
    """Serve on a free port of the loopback interface until the block ends."""
    from rillbase_server.asgi import application
    from rillbase_server.web_process import HTTP_PROTOCOL, WEBSOCKET_PROTOCOL
    from tenants import error_log, usage
    from tenants.request_log import recorder

    logs = (error_log._log, recorder._log, usage._meter)
    for log in logs:
        log._ticker._interval_s = WRITE_S
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    config = uvicorn.Config(
        application,
        log_config=None,
        access_log=False,
        http=HTTP_PROTOCOL,
        ws=WEBSOCKET_PROTOCOL,
        proxy_headers=False,
    )
    server = Server(config)
    thread = threading.Thread(target=server.run, args=([listener],), name="test-server")
    thread.start()
    wait_until(lambda: server.started, what="the test server to start")
    url = f"http://127.0.0.1:{port}"
    LOOPS[url] = server.loop
    try:
        yield url
    finally:
        del LOOPS[url]
        server.should_exit = True
        thread.join()
        listener.close()
        # Their threads may write no more once the database is closed to tests.
        for log in logs:
            log.stop()
