"""Base views of resources that developers define by name: collections, topics, aggregates,
datasets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, TypeVar

from django.db import models
from rest_framework.request import Request
from rest_framework.response import Response

from foundation.api.cursors import page
from foundation.json_types import JsonObject
from foundation.resource import Resource
from tenants.api.base import TenantView
from tenants.models import Tenant
from tenants.roles import Role

R = TypeVar("R", bound=Resource)


class DeclaredView(TenantView):
    """Viewers may read, developers may change."""

    roles: ClassVar = {
        "GET": Role.VIEWER,
        "POST": Role.DEVELOPER,
        "PATCH": Role.DEVELOPER,
        "DELETE": Role.DEVELOPER,
    }
    #: The last segment of the list's path.
    kind: ClassVar[str]

    def owner(self) -> Tenant:
        """Return the tenant, with what determines its limits."""
        return Tenant.objects.select_related("plan", "quota").get(pk=self.tenant.id)

    def listed(
        self, request: Request, rows: models.QuerySet[R], describe: Callable[[R], JsonObject]
    ) -> Response:
        """Respond with a page of the list."""
        return Response(page(request, rows, describe, name=f"{self.kind}:{self.tenant.id}"))

    def created(self, resource: Resource, name: str, shown: JsonObject) -> Response:
        """Respond with the new resource."""
        return self.one(shown, resource.version, status=201, location=self.url(self.kind, name))
