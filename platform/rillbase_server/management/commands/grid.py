"""Run the matching grid, until stopped: its supervisor and, on this machine, its nodes."""

from __future__ import annotations

from functools import partial

from django.core.management.base import BaseCommand, CommandParser

from rillbase_server.grid_server import build_grid
from rillbase_server.until_lost import serve

#: Enough to end the nodes.
GRACE_S = 10


class Command(BaseCommand):
    help = "Run the matching grid; it answers /healthz, /readyz, /status, /metrics."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address for probes and metrics")
        parser.add_argument("--port", type=int, default=8082, help="their port")
        parser.add_argument("--epoch", type=int, help="run only this grid epoch")

    def handle(self, *args: object, **options: object) -> None:
        epoch = None if options["epoch"] is None else int(str(options["epoch"]))
        host, port = str(options["host"]), int(str(options["port"]))
        serve(partial(build_grid, epoch=epoch), host=host, port=port, grace_s=GRACE_S)
