"""Aggregates."""

from __future__ import annotations

from django.core.validators import RegexValidator
from django.db import models

from foundation.names import NAME_PATTERN
from foundation.resource import Resource
from foundation.scope import TenantOwned
from tenants.models import Tenant


class Aggregate(TenantOwned, Resource):
    """A named set of dimensions and measures.

    The storage node knows it by its id and not by its name, so one that was dropped and created
    again is a different one. Either callers add events, or it is a view that follows a collection.
    """

    class State(models.TextChoices):
        ACTIVE = "active"
        #: A new generation is being filled; the one before, if there is one, answers meanwhile.
        BUILDING = "building"
        #: A view that has stopped; `error` says why.
        FAILED = "failed"

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="aggregates")
    name = models.CharField(max_length=63, validators=[RegexValidator(rf"\A{NAME_PATTERN}\Z")])
    #: JSON text, since the order of measures is the caller's: dimensions, time, measures, rollups.
    definition = models.TextField()
    #: How long buckets are kept, such as `90d`; empty: forever.
    retention = models.CharField(max_length=12, blank=True)
    #: The collection of a view, or null. Not a foreign key: a collection is removed in batches with
    #: its documents, and its views remain to report that.
    collection_id = models.UUIDField(null=True, blank=True, db_index=True)
    collection_name = models.CharField(max_length=63, blank=True)
    #: Extended JSON; empty: every document.
    filter = models.TextField(blank=True)
    state = models.CharField(max_length=10, choices=State.choices, default=State.ACTIVE)
    error = models.TextField(blank=True)
    #: Increases with every request to rebuild the rows.
    build_wanted = models.PositiveIntegerField(default=1)
    #: The build that queries see, and the generation in the node that holds it; 0: none yet.
    build_done = models.PositiveIntegerField(default=0)
    generation = models.BigIntegerField(default=0)
    #: The generation that is being filled; 0: none.
    building = models.BigIntegerField(default=0)
    #: How many documents the current build has read.
    documents_read = models.BigIntegerField(default=0)
    #: How many versions of documents the view lacks since its rows were built, because its filter
    #: cannot be evaluated on them, and why the first of them.
    left_out = models.BigIntegerField(default=0)
    left_out_detail = models.TextField(blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "name"], name="aggregate_name_unique")
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_view(self) -> bool:
        """Whether it follows a collection."""
        return self.collection_id is not None
