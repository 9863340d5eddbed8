"""Keep views in step with their collections, until stopped.

Several may run, on as many machines: one follows, the others stand by.
"""

from __future__ import annotations

import uvicorn
from django.core.management.base import BaseCommand, CommandParser

from rillbase_server.views_server import build_views

#: Enough to tell the node of what has been read.
GRACE_S = 5


class Command(BaseCommand):
    help = "Keep aggregate views up to date; it answers /healthz, /readyz, /status, /metrics."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address for probes and scrapers")
        parser.add_argument("--port", type=int, default=8083, help="their port")

    def handle(self, *args: object, **options: object) -> None:
        uvicorn.run(
            build_views(),
            host=str(options["host"]),
            port=int(str(options["port"])),
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=GRACE_S,
        )
