"""The web console: one page, whose script routes by address.

The page comes from the console's build in `console/dist`. Scripts and styles are static files with
fingerprints in their names, which are cached forever; the page itself is requested each time. It is
the same for all users and contains no user data.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from pathlib import Path

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from rillbase_server.version import VERSION

#: Addresses that the console's router handles, without the leading slash.
ADDRESSES = (
    r"^(?:sign-up|sign-in|verify-email|forgot-password|reset-password|invitation|account"
    r"|t/[a-z0-9-]+(?:/.*)?)?$"
)
#: The source of the theme, by which the manifest names it.
_THEME = "src/styles/theme.css"
_FINGERPRINTED = re.compile(r"^.+/console/assets/[^/]+-[A-Za-z0-9_-]{8}\.\w+(?:\.gz)?$")


def is_immutable(path: str, url: str) -> bool:
    """Report to WhiteNoise which files are immutable."""
    return _FINGERPRINTED.match(url) is not None


@require_safe
def page(request: HttpRequest, *_: str) -> HttpResponse:
    """Serve the console, or explain how to build it."""
    built = _page(Path(settings.CONSOLE_DIR) / "index.html")
    if built is None:
        return render(request, "home.html", {"version": VERSION})
    return HttpResponse(built, headers={"Cache-Control": "no-cache"})


def theme() -> str | None:
    """Return the static file with the console's font and colours; None: it is not built."""
    manifest = _page(Path(settings.CONSOLE_DIR) / "manifest.json")
    entry = None if manifest is None else json.loads(manifest).get(_THEME)
    return None if entry is None else f"console/{entry['file']}"


def _page(file: Path) -> bytes | None:
    try:
        return _read(file, file.stat().st_mtime_ns)
    except FileNotFoundError:
        return None


@lru_cache(maxsize=4)
def _read(file: Path, changed_ns: int) -> bytes:
    """Return a file's bytes; `changed_ns` invalidates the cache after a rebuild."""
    return file.read_bytes()
