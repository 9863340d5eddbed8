"""Cross-origin calls to the data plane, from the origins that the tenant lists.

Responses never allow credentials: console cookies are not accepted by the data plane from another
origin. A preflight carries no key, so it cannot be attributed to a tenant; it is answered for every
origin and grants nothing: only a listed origin can read the actual response.
"""

from __future__ import annotations

from django.http import HttpResponse

from foundation.request_context import RequestHead
from tenants.credentials.facts import TenantFacts
from tenants.credentials.origins import foreign_origin, require_listed

ALLOWED_HEADERS = (
    "authorization, content-type, if-match, if-none-match, idempotency-key, last-event-id, "
    "rillbase-key, rillbase-tenant, rillbase-ejson, traceparent, x-request-id"
)
EXPOSED_HEADERS = (
    "etag, location, ratelimit, ratelimit-policy, retry-after, x-request-id, idempotency-replayed"
)
ALLOWED_METHODS = "GET, POST, PUT, PATCH, DELETE"
PREFLIGHT_AGE_S = "600"


def answer_headers(request: RequestHead, tenant: TenantFacts) -> dict[str, str]:
    """Return the headers that let a listed origin read the response; reject other origins."""
    origin = foreign_origin(request)
    if origin is None:
        return {}
    require_listed(origin, tenant)
    return {
        "Access-Control-Allow-Origin": origin,
        "Access-Control-Expose-Headers": EXPOSED_HEADERS,
        "Vary": "Origin",
    }


def is_preflight(request: RequestHead) -> bool:
    """Return whether a request is a CORS preflight."""
    return request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers


def preflight_headers(request: RequestHead) -> dict[str, str]:
    """Return the headers that answer a preflight."""
    return {
        "Access-Control-Allow-Origin": request.headers.get("Origin", "*"),
        "Access-Control-Allow-Methods": ALLOWED_METHODS,
        "Access-Control-Allow-Headers": ALLOWED_HEADERS,
        "Access-Control-Max-Age": PREFLIGHT_AGE_S,
        "Vary": "Origin",
    }


def preflight(request: RequestHead) -> HttpResponse:
    """Answer a preflight."""
    return HttpResponse(status=204, headers=preflight_headers(request))
