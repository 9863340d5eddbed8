"""Topics."""

from __future__ import annotations

from django.core.validators import RegexValidator
from django.db import models

from foundation.names import NAME_PATTERN
from foundation.resource import Resource
from foundation.scope import TenantOwned
from tenants.models import Tenant


class Topic(TenantOwned, Resource):
    """A channel of publications and subscriptions. The storage node identifies a topic by its id
    and not by its name, so a topic that was dropped and created again is a different one.
    """

    class Kind(models.TextChoices):
        #: Equal ids match.
        FLAT = "flat"
        #: An id matches itself, its ancestors and its descendants.
        HIERARCHY = "hierarchy"
        #: Areas on earth match if they have a point in common.
        GEO = "geo"
        #: Areas of a plane match if they have a point in common.
        PLANE = "plane"

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="topics")
    name = models.CharField(max_length=63, validators=[RegexValidator(rf"\A{NAME_PATTERN}\Z")])
    kind = models.CharField(max_length=10, choices=Kind.choices)
    #: `{"bounds": [west, south, east, north], "sides", "depth"}` of a plane, null otherwise.
    grid = models.JSONField(null=True, blank=True)
    #: The maximum life of a publication.
    retention_s = models.PositiveIntegerField()
    #: The maximum size of a publication's data, as BSON.
    max_data_bytes = models.PositiveIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "name"], name="topic_name_unique")]

    def __str__(self) -> str:
        return self.name
