"""Manage tenants' clusters manually: their desired state, pending changes, and current state."""

from __future__ import annotations

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from realtime.clusters.kubernetes import progress_printer, reconcile
from realtime.clusters.kubernetes.connection import api_server
from realtime.clusters.kubernetes.server import ApiServerRejection, ApiServerUnavailable
from realtime.clusters.kubernetes.steps import preview_steps
from realtime.models import Cluster
from tenants.models import Tenant

ALIAS = reconcile.ALIAS


class Command(BaseCommand):
    help = "Manage a tenant's dedicated grid on Kubernetes: plan, diff, apply or status."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        what = {
            "plan": "show what would be created, changed and removed",
            "diff": "the same, field by field",
            "apply": "apply it now, even if it is not due",
            "status": "show the state of the grid",
        }
        parser.add_argument("action", choices=what, help="; ".join(map(": ".join, what.items())))
        parser.add_argument("tenant", help="the tenant's slug")

    def handle(self, *args: object, **options: object) -> None:
        cluster = _cluster(str(options["tenant"]))
        printer = progress_printer.ProgressPrinter(str(options["tenant"]))
        if options["action"] == "status":
            printer.status(cluster)
            return
        try:
            with api_server() as server:
                if options["action"] == "apply":
                    Cluster.unscoped.using(ALIAS).filter(pk=cluster.pk).update(
                        due_at=timezone.now()
                    )
                    reconcile.reconcile(cluster.tenant_id, server, printer.step)
                    printer.end(_cluster(str(options["tenant"])))
                else:
                    current_spec = reconcile.current_spec(cluster)
                    for step in preview_steps(server, current_spec):
                        printer.step(step, fields=options["action"] == "diff")
                    printer.end_preview()
        except (ApiServerUnavailable, ApiServerRejection) as error:
            raise CommandError(f"Kubernetes: {error}") from None


def _cluster(slug: str) -> Cluster:
    """Return a tenant's cluster, or fail if there is none."""
    tenant = Tenant.objects.using(ALIAS).filter(slug=slug).first()
    if tenant is None:
        raise CommandError(f"The tenant {slug!r} does not exist.")
    cluster = Cluster.unscoped.using(ALIAS).filter(tenant_id=tenant.pk).first()
    if cluster is None:
        raise CommandError(f"Tenant {slug!r} has no dedicated grid.")
    return cluster
