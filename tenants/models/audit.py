"""The audit log."""

from __future__ import annotations

from django.db import models

from foundation.ids import uuid7
from foundation.scope import TenantOwned
from tenants.models.tenant import Tenant


class AuditEntry(TenantOwned):
    """One change of the control plane. The application's role may add entries, never alter them."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="+")
    at = models.DateTimeField(auto_now_add=True, db_index=True)
    #: What happened: `api_key.created`, `member.role_changed`, …
    action = models.CharField(max_length=60)
    #: Who did it: `user:<id>`, `api_key:<id>`, `staff:<id>` or `system`.
    actor = models.CharField(max_length=80)
    #: The actor's display name at that time.
    actor_label = models.CharField(max_length=260, blank=True)
    address = models.GenericIPAddressField(null=True)
    request_id = models.CharField(max_length=64, blank=True)
    target_type = models.CharField(max_length=40)
    target_id = models.CharField(max_length=80)
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)

    class Meta:
        verbose_name = "audit entry"
        verbose_name_plural = "audit entries"
        indexes = [models.Index(fields=["tenant", "-id"], name="audit_newest_first")]
