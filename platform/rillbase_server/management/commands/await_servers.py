"""Wait for what a process needs before it starts: `await_servers [--storage] [--ready URL]…`.

Without its database and this release's migrations no process is of use, so that is waited for
without end. Other servers are upgraded before those who call them: they are waited for until they
are of this release or a later one, but only for a while, since an older one does as well, and
without some of them much still works.
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
        patience_s = float(str(options["patience_s"]))
        urls = options["ready"]
        servers: list[AwaitedServer] = [StorageNodeServer()] if options["storage"] else []
        servers += [ReadyServer(str(url)) for url in urls] if isinstance(urls, list) else []
        for server in servers:
            wait_for_release(server, patience_s, self.stdout.write)
        self.stdout.write("ready to start")
