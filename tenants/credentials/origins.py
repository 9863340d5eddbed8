"""The origins of web pages that use a tenant's credentials, which the tenant must list."""

from __future__ import annotations

from foundation.errors import Forbidden
from foundation.request_context import RequestHead
from tenants.credentials.facts import TenantFacts


def foreign_origin(request: RequestHead) -> str | None:
    """Return the origin of the page that sends a request, unless it is this server."""
    origin = request.headers.get("Origin")
    return None if origin == f"{request.scheme}://{request.get_host()}" else origin


def require_listed(origin: str, tenant: TenantFacts) -> None:
    """Raise unless the tenant lists an origin."""
    if origin.lower() not in tenant.cors_origins:
        raise Forbidden(
            f"The origin {origin[:200]!r} is not among the tenant's CORS origins. An admin can add "
            "it in the console, under Settings."
        )
