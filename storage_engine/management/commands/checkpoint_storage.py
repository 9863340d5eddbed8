"""Creates a checkpoint of the storage node: the first step of a backup.

It appears in `checkpoints/NAME` of the node's directory at once. It consists of links, so it takes
almost no space until compaction replaces its files. The caller copies it elsewhere and removes it.
"""

from __future__ import annotations

from django.core.management.base import BaseCommand, CommandError, CommandParser
from redis.exceptions import ResponseError

from foundation.errors import Unavailable
from storage_engine.node import admin


class Command(BaseCommand):
    help = "Create a checkpoint of the storage node under a new name."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="letters, digits and dashes")

    def handle(self, *args: object, **options: object) -> None:
        if not admin.is_configured():
            raise CommandError("STORAGE_URL is not set, so there is no storage node.")
        try:
            self.stdout.write(admin.checkpoint(str(options["name"])))
        except (ResponseError, Unavailable) as error:
            raise CommandError(str(error)) from None
