"""Run the matching grid, until stopped: its supervisor and, on this machine, its nodes."""

from __future__ import annotations

from django.core.management.base import CommandParser

from rillbase_server.processes.command import ProcessCommand


class Command(ProcessCommand):
    help = "Run the matching grid; it answers /healthz, /readyz, /status, /metrics."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--epoch", type=int, help="run only this grid epoch")

    def arguments(self, options: dict[str, object]) -> dict[str, object]:
        return {"epoch": options["epoch"]}
