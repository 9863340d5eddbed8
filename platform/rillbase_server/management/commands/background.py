"""Run all background services in one process, until stopped."""

from __future__ import annotations

from rillbase_server.processes.command import ProcessCommand


class Command(ProcessCommand):
    help = "Run all background services; it answers /healthz, /readyz, /status, /metrics."
