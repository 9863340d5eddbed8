"""Runs a process of the table: its services, and the endpoints for probes and scrapers."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pkgutil import resolve_name

import uvicorn

from foundation.asgi import App, Receive, Scope, Send
from foundation.environment import environment
from foundation.errors import ApiError
from foundation.logs import set_up_logging
from rillbase_server import garbage
from rillbase_server.health import Dependency, HealthEndpoints, MetricsAccess, refuse
from rillbase_server.lifespan import Lifespan
from rillbase_server.processes.supervision import SupervisedService, Supervision
from rillbase_server.processes.table import ProcessDeclaration
from rillbase_server.web_process import HTTP_PROTOCOL

#: Time for probes that are in progress.
GRACE_S = 5


def serve(process: ProcessDeclaration, host: str, port: int, **arguments: object) -> None:
    """Run a process's services until it is stopped, or until its only service fails.

    Then it exits with 1.
    """
    has_failed = False

    def end_process() -> None:
        nonlocal has_failed
        has_failed = server.should_exit = True

    server = uvicorn.Server(
        uvicorn.Config(
            build(process, end_process, **arguments),
            host=host,
            port=port,
            log_config=None,
            access_log=False,
            http=HTTP_PROTOCOL,
            ws="none",
            server_header=False,
            timeout_graceful_shutdown=GRACE_S,
        )
    )
    server.run()
    if has_failed:
        sys.exit(1)


def build(process: ProcessDeclaration, end_process: Callable[[], None], **arguments: object) -> App:
    """Assemble the layers. The services run as long as the server."""
    settings = environment()
    set_up_logging(settings.rillbase_log_format, settings.rillbase_log_level)
    services, dependencies = [], []
    for declaration in process.services:
        service = SupervisedService(
            declaration.name, partial(resolve_name(declaration.factory), **arguments)
        )
        services.append(service)
        # A process with one service is not ready without it.
        required = declaration.awaited or len(process.services) == 1
        dependencies.append(
            Dependency(declaration.dependency, service.check, required, figures=service.figures)
        )
    supervision = Supervision(services, end_process)
    served = HealthEndpoints(
        status_app(supervision.status, MetricsAccess(settings)),
        settings,
        dependencies,
        database_alias=process.database_alias,
    )
    close = dict.fromkeys(name for declared in process.services for name in declared.close)
    return Lifespan(
        served,
        start=[supervision.start, garbage.settle],
        stop=[supervision.stop, *map(resolve_name, close)],
    )


def status_app(status: Callable[[], Mapping[str, object]], access: MetricsAccess) -> App:
    """Serve only `/status`, with the state of the process, to those who may read its metrics."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        exists = scope["path"] == "/status"
        if exists:
            try:
                access.check(scope)
            except ApiError as error:
                await refuse(scope, send, "status", error)
                return
        body = json.dumps(status() if exists else {"title": "Not found", "status": 404})
        await send(
            {
                "type": "http.response.start",
                "status": 200 if exists else 404,
                "headers": [
                    (b"content-type", b"application/json"),
                    (b"cache-control", b"no-store"),
                ],
            }
        )
        await send({"type": "http.response.body", "body": body.encode()})

    return answer
