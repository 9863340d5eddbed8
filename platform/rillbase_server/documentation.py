"""The documentation at `/docs/`: the site that `make docs` builds, as HTML and as Markdown.

The site's inline scripts are allowed by their hashes, so that no other script runs in its pages.
"""

from __future__ import annotations

import base64
import hashlib
import mimetypes
import re
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from django.conf import settings
from django.core.exceptions import SuspiciousFileOperation
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.utils._os import safe_join
from django.utils.cache import get_conditional_response
from django.views.decorators.http import require_safe

from rillbase_server.security_headers import DOCS

POLICY = "Content-Security-Policy"
ADDRESSES = r"^docs/(?P<path>.*)$"
MEDIA_TYPES = {
    ".md": "text/markdown",
    ".txt": "text/plain",
    ".js": "text/javascript",
    ".woff2": "font/woff2",
}
_FROM_ROOT = re.compile(rb"(=\"|\":\")/")
_INLINE_SCRIPT = re.compile(rb"<script>(.*?)</script>", re.DOTALL)


class SiteFile(NamedTuple):
    """A file of the site, with its headers."""

    content: bytes
    headers: dict[str, str]


@require_safe
def page(request: HttpRequest, path: str) -> HttpResponseBase:
    """Serve a file of the site, or its page for addresses that do not exist."""
    site = Path(settings.SITE_DIR)
    file = _file(site, path)
    if file is None:
        file = _file(site, "404.html")
        if file is None:
            raise Http404
        served = _read(file, file.stat().st_mtime_ns)
        # This page names its resources from the server's root, in its HTML and in its settings.
        content = _FROM_ROOT.sub(rb"\1/docs/", served.content)
        return HttpResponse(content, status=404, headers=served.headers)
    if file.name == "index.html" and not path.endswith(("/", "index.html")) and path:
        return HttpResponseRedirect(f"{request.path}/")
    served = _read(file, file.stat().st_mtime_ns)
    response = HttpResponse(served.content, headers=served.headers)
    etag = served.headers["ETag"]
    answer = get_conditional_response(request, etag, response=response) or response
    # The headers of a 304 replace those that the browser has stored.
    answer.headers[POLICY] = served.headers[POLICY]
    return answer


def _file(site: Path, path: str) -> Path | None:
    """Return the file of an address. A path never leads out of the site."""
    try:
        file = Path(safe_join(site, path))
        file = file / "index.html" if file.is_dir() else file
        return file if file.is_file() else None
    except (OSError, SuspiciousFileOperation, ValueError):
        return None


@lru_cache(maxsize=16)
def _read(file: Path, changed_ns: int) -> SiteFile:
    """Return a file; `changed_ns` invalidates the cache after a rebuild."""
    content = file.read_bytes()
    media_type = MEDIA_TYPES.get(file.suffix) or mimetypes.guess_type(file.name)[0]
    if media_type is None or media_type.startswith("text/"):
        media_type = f"{media_type or 'text/plain'}; charset=utf-8"
    hashes = " ".join(f"'sha256-{_hash(script)}'" for script in _INLINE_SCRIPT.findall(content))
    return SiteFile(
        content,
        {
            "Cache-Control": "no-cache",
            POLICY: f"{DOCS.decode()}; script-src 'self' {hashes}",
            "Content-Type": media_type,
            "ETag": f'"{hashlib.sha256(content).hexdigest()[:32]}"',
        },
    )


def _hash(script: bytes) -> str:
    return base64.b64encode(hashlib.sha256(script).digest()).decode()
