"""Follow tables of tenants' own databases for their collections, until stopped.

Several may run, on different machines: one follows, the others are standbys.
"""

from __future__ import annotations

from foundation.asgi import App
from rillbase_server.management.service import ServiceCommand
from rillbase_server.sources_server import build_sources


class Command(ServiceCommand):
    help = (
        "Follow PostgreSQL tables for collections; it answers /healthz, /readyz, /status, /metrics."
    )
    port = 8085

    def build(self) -> App:
        return build_sources()
