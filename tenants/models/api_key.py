"""API keys, which act for a tenant, and personal tokens, which act for a user."""

from __future__ import annotations

from django.db import models

from foundation.resource import Resource
from foundation.scope import TenantOwned
from tenants.models.tenant import Tenant
from tenants.models.user import User


class ApiKey(TenantOwned, Resource):
    """A secret key (`rbk_`), of which only a keyed hash is kept, or a publishable one (`rbp_`).

    Rotation gives the key a successor; the old secret stays valid until `expires_at`.
    """

    class Kind(models.TextChoices):
        SECRET = "secret"
        PUBLISHABLE = "publishable"

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="api_keys")
    kind = models.CharField(max_length=12, choices=Kind.choices)
    name = models.CharField(max_length=100)
    key_id = models.CharField(max_length=16, unique=True)
    #: HMAC-SHA-256 of the whole key, keyed with the server's pepper.
    secret_hash = models.BinaryField(max_length=32)
    #: The key itself if it is not secret: publishable keys can be shown again at any time.
    public_text = models.CharField(max_length=100, blank=True)
    scopes = models.JSONField(default=list)
    #: Names of the collections that the key is restricted to; empty: all.
    collections = models.JSONField(default=list)
    #: Networks (CIDR) from which the key may be used; empty: all.
    allowed_networks = models.JSONField(default=list)
    expires_at = models.DateTimeField(null=True, blank=True, db_index=True)
    #: When the expiry was recorded in the audit log; older than `expires_at`: not yet.
    expiry_noted_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    successor = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, blank=True)
    created_by = models.UUIDField(null=True)


class PersonalToken(Resource):
    """Acts as its user. With `tenant` set it works in that tenant only."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="tokens")
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, null=True, blank=True)
    name = models.CharField(max_length=100)
    key_id = models.CharField(max_length=16, unique=True)
    secret_hash = models.BinaryField(max_length=32)
    expires_at = models.DateTimeField(null=True, blank=True, db_index=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
