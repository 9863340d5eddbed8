"""The headers that tell browsers what an answer may do, by what kind of answer it is.

API answers share the console's origin, so a tenant's JSON must never act as a page: `sandbox`
takes away its scripts, forms and origin should a browser open it. Pages made by us get what they
need and no more; an answer that has its own policy keeps it.
"""

from __future__ import annotations

from collections.abc import Iterable

Headers = list[tuple[bytes, bytes]]

POLICY = b"content-security-policy"

_BASE = (
    b"default-src 'self'; object-src 'none'; base-uri 'none'; "
    b"frame-ancestors 'none'; form-action 'self'"
)
API = b"sandbox"
PAGE = _BASE
DOCS = _BASE + b"; style-src 'self' 'unsafe-inline'; img-src 'self' data:"
# The staff admin's theme evaluates its components' expressions in the page.
STAFF = DOCS + b"; script-src 'self' 'unsafe-inline' 'unsafe-eval'"

# The first prefix that matches decides.
_BY_PREFIX = (
    ("/api/docs", DOCS),
    ("/api/", API),
    ("/v1/", API),
    ("/graphql", API),
    ("/healthz", API),
    ("/readyz", API),
    ("/metrics", API),
    ("/staff/", STAFF),
)

HSTS_SECONDS = 365 * 24 * 3600


class SecurityHeaders:
    """Adds what an answer lacks."""

    def __init__(self, *, hsts: bool) -> None:
        common: Headers = [
            (b"x-content-type-options", b"nosniff"),
            (b"referrer-policy", b"same-origin"),
        ]
        if hsts:
            common.append((b"strict-transport-security", b"max-age=%d" % HSTS_SECONDS))
        self._by_policy = {
            policy: [*common, (POLICY, policy)] for policy in (API, PAGE, DOCS, STAFF)
        }

    def missing(self, path: str, present: Iterable[tuple[bytes, bytes]]) -> Headers:
        """Return the headers to add to an answer of this path."""
        expected = self._by_policy[policy_for(path)]
        names = {name.lower() for name, _ in present}
        return [header for header in expected if header[0] not in names]


def policy_for(path: str) -> bytes:
    for prefix, policy in _BY_PREFIX:
        if path.startswith(prefix):
            return policy
    return PAGE
