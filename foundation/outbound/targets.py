"""Parses and checks a tenant-chosen URL before its host name is resolved."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import SplitResult, quote, urlsplit

from foundation.outbound.errors import TargetRefused

MAX_URL_CHARS = 2048
DEFAULT_PORTS = {"https": 443, "http": 80}

# Services that are not HTTP, or that give control to any client that reaches them. They must not
# interpret a request body that a tenant chose as commands.
DENIED_PORTS = frozenset(
    {
        *(0, 1, 7, 9, 11, 13, 15, 17, 19),  # the old small services
        *(20, 21, 22, 23, 69, 115, 989, 990, 992),  # file transfer and shells
        *(25, 110, 143, 465, 587, 993, 995),  # mail
        *(53, 67, 68, 123, 161, 162, 179, 389, 636),  # names, time, routing, directories
        *(111, 135, 137, 138, 139, 445, 512, 513, 514, 515, 548, 873, 2049),  # files, print, remote
        *(1433, 1521, 3306, 5432, 6379, 9042, 9200, 9300, 11211, 27017),  # databases and caches
        *(2181, 2375, 2376, 2379, 2380, 4001, 6443, 8500, 10250, 10255),  # cluster control
        *(3389, 5900, 6000, 6665, 6666, 6667, 6668, 6669),  # screens and chat
    }
)

# Characters allowed in a URL; others must be percent-encoded or are encoded here.
_PATH_SAFE = "/%:@!$&'()*+,;=~-._"
_UNSAFE = re.compile(r"[\x00-\x20\x7f\\\ud800-\udfff]")
_HOST = re.compile(
    r"(?=.{1,253}\Z)[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*\Z"
)
_IPV6 = re.compile(r"[0-9a-f:.]+\Z")


@dataclass(frozen=True, slots=True)
class OutboundTarget:
    """A parsed URL. `host` is in lower case, in ASCII, and without brackets."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        """The value of the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"


def parse_target(url: str, *, allow_http: bool) -> OutboundTarget:
    """Parse a URL, or reject it with the reason."""
    if len(url) > MAX_URL_CHARS:
        raise TargetRefused(f"The URL is longer than {MAX_URL_CHARS} characters.")
    if _UNSAFE.search(url):
        raise TargetRefused("The URL contains characters that are not allowed in URLs.")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise TargetRefused("The URL is malformed.") from None
    if parts.scheme != "https" and not (allow_http and parts.scheme == "http"):
        raise TargetRefused("The URL must begin with https://.")
    if "@" in parts.netloc:
        raise TargetRefused("The URL must not contain a user name or password.")
    if port is None:
        port = DEFAULT_PORTS[parts.scheme]
    if port in DENIED_PORTS:
        raise TargetRefused(f"Port {port} is not allowed.")
    return OutboundTarget(parts.scheme, _host(parts), port, _path(parts))


def _host(parts: SplitResult) -> str:
    host = (parts.hostname or "").removesuffix(".")
    if ":" in host:
        if not _IPV6.match(host):
            raise TargetRefused("The URL's host is not valid.")
        return host
    try:
        host = host.encode("idna").decode("ascii").lower()
    except UnicodeError:
        raise TargetRefused("The URL's host is not valid.") from None
    if not _HOST.match(host):
        raise TargetRefused("The URL's host is not valid.")
    return host


def _path(parts: SplitResult) -> str:
    path = quote(parts.path or "/", safe=_PATH_SAFE)
    return f"{path}?{quote(parts.query, safe=_PATH_SAFE + '?')}" if parts.query else path
