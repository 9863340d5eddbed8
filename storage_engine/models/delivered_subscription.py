"""Subscriptions whose publications go to a webhook."""

from __future__ import annotations

from django.db import models

from foundation.ids import uuid7
from foundation.scope import TenantOwned
from storage_engine.models.topic import Topic
from tenants.models import Tenant
from tenants.models.webhook import Webhook


class DeliveredSubscription(TenantOwned):
    """The position up to which a subscription has been delivered to its webhook. It advances in the
    transaction that creates the delivery, so no publication is delivered twice or skipped, wherever
    the sweep is interrupted.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="+")
    topic = models.ForeignKey(Topic, on_delete=models.CASCADE, related_name="+")
    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="+")
    #: The node's name of the subscription.
    name = models.TextField()
    #: The name in the API.
    public_id = models.TextField()
    subscriber = models.CharField(max_length=200, blank=True)
    position = models.BigIntegerField()
    expires_at = models.DateTimeField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [models.Index(fields=["tenant", "expires_at"], name="delivered_by_end")]
