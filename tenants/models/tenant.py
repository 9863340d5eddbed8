"""Tenants, the owners of data."""

from __future__ import annotations

from django.core.validators import RegexValidator
from django.db import models

from foundation.resource import Resource

SLUG_PATTERN = r"[a-z](?:[a-z0-9]|-(?=[a-z0-9])){1,47}"


class Tenant(Resource):
    """An owner of data, keys and quota, addressed by its slug.

    `deleting` tenants answer 410 until `purge_at`, when all stores are cleaned and the row is
    deleted.
    """

    class State(models.TextChoices):
        ACTIVE = "active"
        SUSPENDED = "suspended"
        DELETING = "deleting"

    slug = models.CharField(
        unique=True, max_length=48, validators=[RegexValidator(rf"\A{SLUG_PATTERN}\Z")]
    )
    name = models.CharField(max_length=100)
    plan = models.ForeignKey("tenants.Plan", on_delete=models.PROTECT)
    state = models.CharField(max_length=10, choices=State.choices, default=State.ACTIVE)
    #: Origins whose pages may call the data plane from a browser.
    cors_origins = models.JSONField(default=list)
    deleted_at = models.DateTimeField(null=True, blank=True)
    purge_at = models.DateTimeField(null=True, blank=True, db_index=True)

    def __str__(self) -> str:
        return self.slug
