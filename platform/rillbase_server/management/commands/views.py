"""Keep views in step with their collections, until stopped.

Several may run, on different machines: one follows, the others are standbys.
"""

from __future__ import annotations

from rillbase_server.processes.command import ProcessCommand


class Command(ProcessCommand):
    help = "Keep aggregate views up to date; it answers /healthz, /readyz, /status, /metrics."
