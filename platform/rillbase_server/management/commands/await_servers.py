"""Wait for the servers that a process needs: `await_servers [--storage] [--ready URL]…`.

No process works without its database and this release's migrations, so it waits for these
indefinitely. Other servers are upgraded before their callers, so it waits until they have this
release or a later one. That wait is limited, since older servers work too, and much works without
some of them.
"""

from __future__ import annotations

from django.core.management.base import BaseCommand, CommandParser

from rillbase_server.server_readiness import (
    AwaitedServer,
    ReadyServer,
    StorageNodeServer,
    wait_for_database,
    wait_for_release,
)

MAX_WAIT_S = 300.0


class Command(BaseCommand):
    help = "Wait for the database and its migrations, then for servers of this release."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--storage", action="store_true", help="wait for the storage node")
        parser.add_argument(
            "--ready", action="append", default=[], help="wait for the server at this URL"
        )
        parser.add_argument(
            "--patience-s",
            type=float,
            default=MAX_WAIT_S,
            help="maximum time to wait for each of them",
        )

    def handle(self, *args: object, **options: object) -> None:
        wait_for_database(self.stdout.write)
        max_wait_s = float(str(options["patience_s"]))
        urls = options["ready"]
        servers: list[AwaitedServer] = [StorageNodeServer()] if options["storage"] else []
        servers += [ReadyServer(str(url)) for url in urls] if isinstance(urls, list) else []
        for server in servers:
            wait_for_release(server, max_wait_s, self.stdout.write)
        self.stdout.write("ready to start")
