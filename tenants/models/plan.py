"""Plans and quotas: a tenant's limits."""

from __future__ import annotations

from django.db import models

from foundation.resource import Resource
from foundation.scope import TenantOwned
from tenants.models.tenant import Tenant


class Plan(models.Model):
    """A named set of limits. `limits` maps a name of `tenants.quotas.LIMITS` to a number."""

    name = models.CharField(primary_key=True, max_length=40)
    description = models.CharField(max_length=200, blank=True)
    limits = models.JSONField(default=dict)

    def __str__(self) -> str:
        return self.name


class Quota(TenantOwned, Resource):
    """What staff have granted one tenant beyond, or below, its plan."""

    tenant = models.OneToOneField(Tenant, on_delete=models.CASCADE)
    limits = models.JSONField(default=dict)
