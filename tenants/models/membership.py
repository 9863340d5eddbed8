"""Members of tenants and their roles."""

from __future__ import annotations

from django.db import models

from foundation.resource import Resource
from foundation.scope import TenantOwned
from tenants.models.tenant import Tenant
from tenants.models.user import User
from tenants.roles import Role


class Membership(TenantOwned, Resource):
    """A user's membership in a tenant."""

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=[(r.value, r.value) for r in Role])

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "user"], name="membership_once_per_tenant")
        ]
