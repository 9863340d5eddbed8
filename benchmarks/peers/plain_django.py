"""The peer of the control plane: the same SELECT in a transaction, in a bare Django view.

No middleware, no authentication, no limits, no tenancy: what remains is the price of Django,
of the pool and of PostgreSQL, on the same uvicorn.
"""

from __future__ import annotations

from uuid import UUID

from django.db import transaction
from django.http import HttpRequest, JsonResponse
from django.urls import path

from tenants.actions.api_keys import describe
from tenants.models import ApiKey


def read_key(request: HttpRequest, tenant: UUID, key: UUID) -> JsonResponse:
    """Answer one API key."""
    with transaction.atomic(using="owner"):
        row = ApiKey.unscoped.using("owner").get(tenant_id=tenant, pk=key)
    answer = JsonResponse(describe(row))
    answer.headers["Content-Length"] = str(len(answer.content))
    return answer


urlpatterns = [path("tenants/<uuid:tenant>/api-keys/<uuid:key>", read_key)]
