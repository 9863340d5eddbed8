"""Move analytics tables from stage to stage, until stopped.

Several may run, on different machines: one leads, the others are standbys.
"""

from __future__ import annotations

from django.core.management.base import BaseCommand, CommandParser

from rillbase_server.pipeline_server import build_pipeline
from rillbase_server.until_lost import serve

#: Enough to end Spark; a stage that is cut off is done again.
GRACE_S = 10


class Command(BaseCommand):
    help = "Run the analytics pipeline; it answers /healthz, /readyz, /status, /metrics."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address for probes and metrics")
        parser.add_argument("--port", type=int, default=8084, help="their port")

    def handle(self, *args: object, **options: object) -> None:
        host, port = str(options["host"]), int(str(options["port"]))
        serve(build_pipeline, host=host, port=port, grace_s=GRACE_S)
