"""The work of sessions whose worker starts a thread before it is confined."""

from __future__ import annotations

import socket
import threading

from foundation.sandbox import messages


def warm_up() -> None:
    threading.Thread(target=threading.Event().wait, daemon=True).start()


def work(connection: socket.socket) -> None:
    messages.receive_request(connection)
    messages.send_reply(connection, {"worked": True})
