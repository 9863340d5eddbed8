"""Personal tokens: a user's own credentials for scripts."""

from __future__ import annotations

from django.db import models

from foundation.resource import Resource
from tenants.models.tenant import Tenant
from tenants.models.user import User


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
