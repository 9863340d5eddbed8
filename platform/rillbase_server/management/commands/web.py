"""Run the web server. The command's process becomes the server and keeps its id.

The deployment runs copies if needed, so there is a single process, which handles signals itself.
"""

from __future__ import annotations

import os

from django.core.management.base import BaseCommand, CommandParser

from rillbase_server.web_process import ENVIRONMENT, web_argv

#: Time for requests that are in progress after the drain.
GRACE_S = 15


class Command(BaseCommand):
    help = "Run the web server; besides the API, it answers /healthz, /readyz, /metrics."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
        parser.add_argument("--port", type=int, default=8080, help="port to listen on")

    def handle(self, *args: object, **options: object) -> None:
        port = int(str(options["port"]))
        argv = web_argv(str(options["host"]), port, workers=1, grace_s=GRACE_S)
        os.execve(argv[0], argv, {**os.environ, **ENVIRONMENT})  # noqa: S606 -- the interpreter that runs this
