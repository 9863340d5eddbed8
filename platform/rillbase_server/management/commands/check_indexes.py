"""Compare the indexes of collections with their documents."""

from __future__ import annotations

from django.core.management.base import BaseCommand, CommandError, CommandParser

from documents.collections.index_check import MOST_FAULTS, check_indexes
from documents.models import Collection


class Command(BaseCommand):
    help = (
        "Compare the indexes of collections with their documents, while they are read and written. "
        "Ends with status 1 if an index is wrong; drop and declare it again to build it anew."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--tenant", help="only this tenant, by its slug")
        parser.add_argument("--collection", help="only collections with this name")

    def handle(self, *args: object, **options: object) -> None:
        rows = Collection.unscoped.using("relay").filter(state=Collection.State.ACTIVE)
        if options["tenant"] is not None:
            rows = rows.filter(tenant__slug=options["tenant"])
        if options["collection"] is not None:
            rows = rows.filter(name=options["collection"])
        rows = rows.select_related("tenant").order_by("tenant__slug", "name")
        wrong = 0
        for collection in rows:
            report = check_indexes(collection)
            place = f"{collection.tenant.slug}/{collection.name}"
            counts = f"{report.documents:,} documents, {report.entries:,} entries"
            self.stdout.write(f"{place}: {counts}, {len(report.faults)} wrong")
            for fault in report.faults:
                self.stdout.write(f"  index {fault.index_name}: document {fault.document}")
            if len(report.faults) >= MOST_FAULTS:
                self.stdout.write("  The check ended here: there may be more.")
            wrong += len(report.faults)
        if wrong:
            raise CommandError("Indexes are wrong. Drop and declare them again.")
