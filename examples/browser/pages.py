"""The files of a page, those that all pages share, and the built SDK."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler
from pathlib import Path

HERE = Path(__file__).resolve().parent
#: Folders by URL prefix; all other files are in the page's own folder.
SHARED = {"sdk/": HERE.parents[1] / "sdk" / "js" / "dist", "shared/": HERE / "shared"}
KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}


def handler(folder: Path, settings: Mapping[str, str], url: str) -> type[BaseHTTPRequestHandler]:
    """Return a handler for the page and its settings."""
    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; "
        f"connect-src 'self' {url} {url.replace('http', 'ws', 1)}"
    )

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if self.path == "/settings.json":
                self._answer("application/json", json.dumps(settings).encode())
                return
            file = _file(folder, self.path.partition("?")[0])
            if file is None:
                self.send_error(404)
            else:
                self._answer(f"{KINDS[file.suffix]}; charset=utf-8", file.read_bytes())

        def _answer(self, kind: str, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Content-Security-Policy", policy)
            self.send_header("Cache-Control", "no-cache")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- its name
            """Log nothing: the page shows more."""

    return Handler


def _file(folder: Path, path: str) -> Path | None:
    """Return the file of a URL, which has to be in one of these folders."""
    name = path.lstrip("/") or "page.html"
    prefix = next((prefix for prefix in SHARED if name.startswith(prefix)), "")
    root = SHARED.get(prefix, folder)
    file = (root / name.removeprefix(prefix)).resolve()
    fits = file.is_relative_to(root) and file.suffix in KINDS and file.is_file()
    return file if fits else None
