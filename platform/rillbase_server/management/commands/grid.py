"""Run the matching grid, until stopped: its supervisor and, on this machine, its nodes."""

from __future__ import annotations

import sys
from functools import partial

import uvicorn
from django.core.management.base import BaseCommand, CommandParser

from rillbase_server.grid_server import build_grid

#: Enough to end the nodes.
GRACE_S = 10


class Command(BaseCommand):
    help = "Run the matching grid; it answers /healthz, /readyz, /status, /metrics."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address for probes and scrapers")
        parser.add_argument("--port", type=int, default=8082, help="their port")
        parser.add_argument("--epoch", type=int, help="run this grid epoch and no other")

    def handle(self, *args: object, **options: object) -> None:
        gave_up = False
        epoch = options["epoch"]

        def give_up() -> None:
            nonlocal gave_up
            gave_up = server.should_exit = True

        server = uvicorn.Server(
            uvicorn.Config(
                partial(build_grid, give_up, None if epoch is None else int(str(epoch))),
                factory=True,
                host=str(options["host"]),
                port=int(str(options["port"])),
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=GRACE_S,
            )
        )
        server.run()
        if gave_up:
            # Whoever supervises this process starts it again.
            sys.exit(1)
