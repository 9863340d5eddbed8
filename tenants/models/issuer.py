"""Issuers of end users' tokens (JWT) that a tenant trusts."""

from __future__ import annotations

from django.db import models

from foundation.resource import Resource
from foundation.scope import TenantOwned
from tenants.models.tenant import Tenant


class Issuer(TenantOwned, Resource):
    """`iss`, `aud` and algorithms are pinned; keys come from a JWKS URL or a shared secret."""

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="issuers")
    name = models.CharField(max_length=63)
    issuer = models.CharField(max_length=300)
    audience = models.CharField(max_length=300)
    algorithms = models.JSONField(default=list)
    jwks_url = models.CharField(max_length=500, blank=True)
    #: Shared secret, sealed; empty when keys come from `jwks_url`.
    sealed_secret = models.BinaryField(default=b"")
    #: Allowed difference between the clocks of the issuer and of Rillbase.
    leeway_s = models.PositiveSmallIntegerField(default=30)
    #: Tokens are rejected this long after they were issued, whatever their expiry.
    max_token_age_s = models.PositiveIntegerField(default=86_400, db_default=86_400)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "name"], name="issuer_name_per_tenant"),
            models.UniqueConstraint(
                fields=["tenant", "issuer", "audience"], name="issuer_once_per_tenant"
            ),
        ]
