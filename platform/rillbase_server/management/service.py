"""The command of a service that works on its event loop and answers probes beside that."""

from __future__ import annotations

import uvicorn
from django.core.management.base import BaseCommand, CommandParser

from foundation.asgi import App
from rillbase_server.web_process import HTTP_PROTOCOL

#: Enough to end what is being written: a page, a batch, a word to the node.
GRACE_S = 5


class ServiceCommand(BaseCommand):
    """Runs until it is stopped."""

    requires_system_checks: list[str] = []
    #: The default address for probes and metrics.
    port: int

    def build(self) -> App:
        """Put the service together; its lifespan starts and stops it."""
        raise NotImplementedError

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address for probes and metrics")
        parser.add_argument("--port", type=int, default=self.port, help="their port")

    def handle(self, *args: object, **options: object) -> None:
        uvicorn.run(
            self.build(),
            host=str(options["host"]),
            port=int(str(options["port"])),
            log_config=None,
            access_log=False,
            http=HTTP_PROTOCOL,
            ws="none",
            server_header=False,
            timeout_graceful_shutdown=GRACE_S,
        )
