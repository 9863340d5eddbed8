"""Topics."""

from __future__ import annotations

from django.core.validators import RegexValidator
from django.db import models

from foundation.names import NAME_PATTERN
from foundation.resource import Resource
from foundation.scope import TenantOwned
from tenants.models import Tenant


class Topic(TenantOwned, Resource):
    """Where publications and subscriptions meet.

    The storage node knows a topic by its id and not by its name, so a topic that was dropped and
    made again is another one.
    """

    class Kind(models.TextChoices):
        #: Equal ids meet.
        FLAT = "flat"
        #: An id meets itself, those above it and those below it.
        HIERARCHY = "hierarchy"
        #: Areas on earth meet that have a point in common.
        GEO = "geo"
        #: Areas of a plane meet that have a point in common.
        PLANE = "plane"

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="topics")
    name = models.CharField(max_length=63, validators=[RegexValidator(rf"\A{NAME_PATTERN}\Z")])
    kind = models.CharField(max_length=10, choices=Kind.choices)
    #: `{"bounds": [west, south, east, north], "sides", "depth"}` of a plane, null otherwise.
    grid = models.JSONField(null=True, blank=True)
    #: The longest life of a publication.
    retention_s = models.PositiveIntegerField()
    #: The most that a publication may carry, as BSON.
    max_data_bytes = models.PositiveIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "name"], name="topic_name_unique")]

    def __str__(self) -> str:
        return self.name
