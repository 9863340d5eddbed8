"""Print a link that signs a user in, once and on this machine.

`manage.py sign-in-link` runs this command with the settings of a running instance.
"""

from __future__ import annotations

from django.core.management.base import BaseCommand, CommandError, CommandParser

from rillbase_server.demo import EMAIL
from tenants.actions import local_links
from tenants.links import LIFETIMES
from tenants.models import Purpose, User
from tenants.models.user import normal_email


class Command(BaseCommand):
    help = "Print a link that signs a user in, once and on this machine. Not in production."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email", nargs="?", default=EMAIL, help="default: %(default)s")

    def handle(self, *args: object, **options: object) -> None:
        if not local_links.are_accepted():
            raise CommandError(
                "A production installation accepts no printed links. Request a link by email on "
                "its sign-in page."
            )
        email = str(options["email"])
        user = User.objects.using("auth").filter(email=normal_email(email), is_active=True).first()
        if user is None:
            raise CommandError(f"No active user has the address {email}.")
        self.stdout.write(local_links.do_issue(user))
        minutes = LIFETIMES[Purpose.SIGN_IN].total_seconds() / 60
        self.stderr.write(f"It works once, on this machine, for {minutes:.0f} minutes.")
