"""Moves of collections between backends."""

from __future__ import annotations

from django.db import models

from documents.backend import Backend
from documents.models.collection import Collection
from foundation.scope import TenantOwned


class CollectionMove(TenantOwned):
    """A collection's move to the other backend, until it ends. One that has failed remains until
    the next one begins.
    """

    class State(models.TextChoices):
        #: What an earlier move has left in the new backend is removed.
        CLEARING = "clearing"
        #: Documents are copied in the order of their keys, then those that were changed meanwhile.
        COPYING = "copying"
        FAILED = "failed"

    tenant = models.ForeignKey("tenants.Tenant", on_delete=models.CASCADE, related_name="+")
    collection = models.OneToOneField(Collection, on_delete=models.CASCADE, related_name="move")
    backend = models.CharField(max_length=10, choices=[(one, one) for one in Backend])
    state = models.CharField(max_length=10, choices=State.choices, default=State.CLEARING)
    #: The key of the last document that was copied in order.
    position = models.BinaryField(default=b"")
    #: Whether all were copied in order.
    has_copied_all = models.BooleanField(default=False)
    documents_done = models.BigIntegerField(default=0)
    documents_total = models.BigIntegerField(default=0)
    error = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return f"{self.collection} to {self.backend}"
