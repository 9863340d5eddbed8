"""The web console: one page, which the browser turns into whichever one its address names.

The page is what the console's build left in `console/dist`; scripts and styles are static files
with their fingerprints in their names, so they may be cached forever while the page itself is
requested each time. The page contains no user's data: it is the same for all users.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from rillbase_server.version import VERSION

#: Addresses that the console's own router knows, without the slash in front.
ADDRESSES = (
    r"^(?:sign-up|sign-in|verify-email|forgot-password|reset-password|invitation|account"
    r"|t/[a-z0-9-]+(?:/.*)?)?$"
)
_FINGERPRINTED = re.compile(r"^.+/console/assets/[^/]+-[A-Za-z0-9_-]{8}\.\w+(?:\.gz)?$")


def is_immutable(path: str, url: str) -> bool:
    """Report to WhiteNoise which files are immutable."""
    return _FINGERPRINTED.match(url) is not None


@require_safe
def page(request: HttpRequest, *_: str) -> HttpResponse:
    """Serve the console, or say how to build it."""
    built = _page(Path(settings.CONSOLE_DIR) / "index.html")
    if built is None:
        return render(request, "home.html", {"version": VERSION})
    return HttpResponse(built, headers={"Cache-Control": "no-cache"})


def _page(file: Path) -> bytes | None:
    try:
        return _read(file, file.stat().st_mtime_ns)
    except FileNotFoundError:
        return None


@lru_cache(maxsize=2)
def _read(file: Path, changed_ns: int) -> bytes:
    """Return a file's bytes; `changed_ns` distinguishes a page that was rebuilt."""
    return file.read_bytes()
