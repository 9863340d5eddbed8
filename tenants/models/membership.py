"""Members of tenants and their roles, and invitations to join."""

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


class Invitation(TenantOwned, Resource):
    """A mailed offer of membership. The link's token is kept as a hash only."""

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="invitations")
    email = models.EmailField(max_length=254)
    role = models.CharField(max_length=10, choices=[(r.value, r.value) for r in Role])
    token_hash = models.BinaryField(unique=True, max_length=32)
    invited_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True)
    expires_at = models.DateTimeField(db_index=True)
    accepted_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "email"],
                condition=models.Q(accepted_at__isnull=True),
                name="invitation_open_once_per_address",
            )
        ]
