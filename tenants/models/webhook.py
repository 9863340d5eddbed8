"""Webhooks and the log of their deliveries."""

from __future__ import annotations

from django.db import models

from foundation.ids import uuid7
from foundation.resource import Resource
from foundation.scope import TenantOwned
from tenants.models.tenant import Tenant


class Webhook(TenantOwned, Resource):
    """A URL of the tenant that receives events, signed as specified by Standard Webhooks. It starts
    as `pending`, becomes `active` when the receiver has completed the handshake, and becomes
    `disabled` manually or after failing for too long.
    """

    class State(models.TextChoices):
        PENDING = "pending"
        ACTIVE = "active"
        DISABLED = "disabled"

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="webhooks")
    name = models.CharField(max_length=100)
    url = models.CharField(max_length=2000)
    #: Event types, each exact (`api_key.created`), by family (`api_key.*`) or all (`*`).
    events = models.JSONField(default=list)
    sealed_secret = models.BinaryField()
    #: The secret before the last rotation, which also signs until `previous_until`.
    sealed_previous_secret = models.BinaryField(default=b"")
    previous_until = models.DateTimeField(null=True, blank=True)
    state = models.CharField(max_length=10, choices=State.choices, default=State.PENDING)
    state_reason = models.CharField(max_length=200, blank=True)
    #: Start of the current series of failures; None after a success.
    failing_since = models.DateTimeField(null=True, blank=True)
    #: During failures: no attempt before this time, so that a dead receiver costs little.
    held_until = models.DateTimeField(null=True, blank=True)


class WebhookDelivery(TenantOwned):
    """One event for one webhook: the message, the last response, and the next attempt."""

    class State(models.TextChoices):
        PENDING = "pending"
        DELIVERED = "delivered"
        FAILED = "failed"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="+")
    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="deliveries")
    event_id = models.UUIDField()
    event_type = models.CharField(max_length=60)
    payload = models.JSONField()
    state = models.CharField(max_length=10, choices=State.choices, default=State.PENDING)
    attempts = models.PositiveSmallIntegerField(default=0)
    next_attempt_at = models.DateTimeField(null=True, blank=True, db_index=True)
    last_status = models.PositiveSmallIntegerField(null=True, blank=True)
    last_error = models.CharField(max_length=300, blank=True)
    #: The first bytes of the receiver's last response, as text.
    last_answer = models.CharField(max_length=1000, blank=True)
    last_duration_ms = models.PositiveIntegerField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    #: The delivery that this one repeats on request.
    redelivery_of = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, blank=True)

    class Meta:
        verbose_name = "webhook delivery"
        verbose_name_plural = "webhook deliveries"
        indexes = [models.Index(fields=["tenant", "webhook", "-id"], name="delivery_newest_first")]
