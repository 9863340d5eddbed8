"""Run the installation's clock and the relay of its tasks, until stopped."""

from __future__ import annotations

from rillbase_server.processes.command import ProcessCommand


class Command(ProcessCommand):
    help = "Run Celery's beat; it answers /healthz, /readyz, /status, /metrics."
