"""Follow tables of tenants' own databases for their collections, until stopped.

Several may run, on different machines: one follows, the others are standbys.
"""

from __future__ import annotations

from rillbase_server.processes.command import ProcessCommand


class Command(ProcessCommand):
    help = "Follow tables for collections; it answers /healthz, /readyz, /status, /metrics."
