"""Create the roles, privileges and tables that must exist before any process starts.

Idempotent, and safe to run from several places at once: an advisory lock serialises them.
"""

from __future__ import annotations

from pathlib import Path

from django.core.management.base import BaseCommand, CommandParser

from rillbase_server.database import prepare
from rillbase_server.demo import ensure_demo, ensure_samples, write_demo


class Command(BaseCommand):
    help = "Create the application's database roles and bring the schema up to date."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--demo-json",
            type=Path,
            help="also create a demo tenant with sample data if it does not exist, and write its "
            "login and key to this file",
        )

    def handle(self, *args: object, **options: object) -> None:
        applied = prepare()
        self.stdout.write(f"database ready, {applied} migrations applied")
        path = options["demo_json"]
        if isinstance(path, Path):
            write_demo(path, ensure_demo(path))
            ensure_samples()
