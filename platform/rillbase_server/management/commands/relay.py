"""Publish transactions that writers did not, and append ticks, until stopped.

Several may run, on different machines: one leads, the others are standbys.
"""

from __future__ import annotations

from rillbase_server.processes.command import ProcessCommand


class Command(ProcessCommand):
    help = "Run a relay of the documents' outbox; it answers /healthz, /readyz, /status, /metrics."
