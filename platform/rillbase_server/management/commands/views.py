"""Keep views in step with their collections, until stopped.

Several may run, on different machines: one follows, the others are standbys.
"""

from __future__ import annotations

from foundation.asgi import App
from rillbase_server.management.service import ServiceCommand
from rillbase_server.views_server import build_views


class Command(ServiceCommand):
    help = "Keep aggregate views up to date; it answers /healthz, /readyz, /status, /metrics."
    port = 8083

    def build(self) -> App:
        return build_views()
