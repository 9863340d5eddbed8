"""The management command of a process of the table."""

from __future__ import annotations

from django.core.management.base import BaseCommand, CommandParser

from rillbase_server.processes.runner import serve
from rillbase_server.processes.table import PROCESSES


class ProcessCommand(BaseCommand):
    """Runs a process until it is stopped. The command has the name of the process."""

    requires_system_checks: list[str] = []

    @property
    def _process(self) -> str:
        return type(self).__module__.rpartition(".")[2]

    def add_arguments(self, parser: CommandParser) -> None:
        port = PROCESSES[self._process].port
        parser.add_argument("--host", default="127.0.0.1", help="address for probes and metrics")
        parser.add_argument("--port", type=int, default=port, help="their port")

    def handle(self, *args: object, **options: object) -> None:
        host, port = str(options["host"]), int(str(options["port"]))
        serve(PROCESSES[self._process], host, port, **self.arguments(options))

    def arguments(self, options: dict[str, object]) -> dict[str, object]:
        """Return additional arguments for the services."""
        return {}
