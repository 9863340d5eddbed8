"""Queries that members have saved for the tenant, with their charts."""

from __future__ import annotations

from django.db import models

from foundation.resource import Resource
from foundation.scope import TenantOwned
from tenants.models.tenant import Tenant


class SavedQuery(TenantOwned, Resource):
    """A query over a collection, an aggregate or a dataset. It is a text to run again, not a grant:
    whoever runs it needs the right to do so, and its source may have been deleted meanwhile.
    """

    class Kind(models.TextChoices):
        COLLECTION = "collection"
        AGGREGATE = "aggregate"
        DATASET = "dataset"

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=100)
    kind = models.CharField(max_length=10, choices=Kind.choices)
    #: The name of the collection, aggregate or dataset.
    source = models.CharField(max_length=63)
    #: JSON text: the order of members is significant in filters.
    query = models.TextField()
    #: `{"type", "x", "y", "series"}`, or null: a table.
    chart = models.JSONField(null=True, blank=True)
    #: The position on the overview, from 0; null: it is not pinned.
    pin = models.PositiveSmallIntegerField(null=True, blank=True)

    class Meta:
        verbose_name_plural = "saved queries"
        constraints = [
            models.UniqueConstraint(fields=["tenant", "name"], name="saved_query_name_per_tenant")
        ]

    def __str__(self) -> str:
        return self.name
