"""Move analytics tables from stage to stage, until stopped.

Several may run, on different machines: one leads, the others are standbys.
"""

from __future__ import annotations

from rillbase_server.processes.command import ProcessCommand


class Command(ProcessCommand):
    help = "Run the analytics pipeline; it answers /healthz, /readyz, /status, /metrics."
