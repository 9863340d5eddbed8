"""Publish what writers could not, and prove the event layer complete, until stopped.

Several may run, on different machines: one leads, the others are standbys.
"""

from __future__ import annotations

from foundation.asgi import App
from rillbase_server.management.service import ServiceCommand
from rillbase_server.relay_server import build_relay


class Command(ServiceCommand):
    help = "Run a relay of the documents' outbox; it answers /healthz, /readyz, /status, /metrics."
    port = 8081

    def build(self) -> App:
        return build_relay()
