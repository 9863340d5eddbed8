"""Console sessions: the user can list them and end any of them."""

from __future__ import annotations

from django.db import models

from foundation.ids import uuid7
from tenants.models.user import User


class UserSession(models.Model):
    """One signed-in browser. Only a hash of the cookie's value is kept."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="sessions")
    token_hash = models.BinaryField(unique=True, max_length=32)
    address = models.GenericIPAddressField(null=True)
    user_agent = models.CharField(max_length=300, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    last_seen_at = models.DateTimeField()
    expires_at = models.DateTimeField(db_index=True)
