"""Security headers of responses, by the kind of response.

API responses share the console's origin, so a tenant's JSON must never act as a page: `sandbox`
disables scripts, forms and the origin if a browser opens it. Our own pages are allowed only what
they need. A response that has its own policy keeps it.

Browsers do not store API responses: the address of a document is the same for all tenants and
users, and so may be its ETag, so that a stored response could be taken for one of another tenant.
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
# The staff admin's theme evaluates expressions in the page.
STAFF = DOCS + b"; script-src 'self' 'unsafe-inline' 'unsafe-eval'"

# The first matching prefix applies.
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
    """Adds missing headers to responses."""

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
        self._by_policy[API].append((b"cache-control", b"no-store"))

    def missing(self, path: str, present: Iterable[tuple[bytes, bytes]]) -> Headers:
        """Return the headers to add to a response for this path."""
        expected = self._by_policy[policy_for(path)]
        names = {name.lower() for name, _ in present}
        return [header for header in expected if header[0] not in names]


def policy_for(path: str) -> bytes:
    for prefix, policy in _BY_PREFIX:
        if path.startswith(prefix):
            return policy
    return PAGE
