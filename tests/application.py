"""The server's application, with time enough for a busy machine."""

from __future__ import annotations

from rillbase_server.asgi import application
from tests.busy_machine import extend_time_limits

__all__ = ["application"]

extend_time_limits()
