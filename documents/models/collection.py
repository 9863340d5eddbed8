"""Collections of documents."""

from __future__ import annotations

from django.core.validators import RegexValidator
from django.db import models

from documents.backend import Backend
from foundation.names import NAME_PATTERN
from foundation.resource import Resource
from foundation.scope import TenantOwned
from tenants.models import Tenant


class Collection(TenantOwned, Resource):
    """A named set of documents and its definition. Writers of documents read this row after taking
    the collection's lock, and a change of the definition holds that lock exclusively and raises
    `write_version` (`documents.store.locks`). So no write uses an outdated definition.
    """

    class MoveStage(models.TextChoices):
        """Stages that writers have to know (`documents.store.facts`)."""

        COPYING = "copying"
        SEALED = "sealed"

    class State(models.TextChoices):
        ACTIVE = "active"
        #: The name can be reused; documents are removed in the background.
        DROPPING = "dropping"

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="collections")
    name = models.CharField(max_length=63, validators=[RegexValidator(rf"\A{NAME_PATTERN}\Z")])
    state = models.CharField(max_length=10, choices=State.choices, default=State.ACTIVE)
    #: Extended JSON, since the order of members and the types of numbers are significant; null:
    #: none.
    schema = models.TextField(null=True, blank=True)  # noqa: DJ001 -- absent is not empty
    #: Extended JSON: `{"read": filter | true | false, …}`.
    access_rules = models.TextField(default="{}")
    #: `{"field", "after_s"}`, or null.
    ttl = models.JSONField(null=True, blank=True)
    backend = models.CharField(max_length=10, default=Backend.POSTGRES)
    #: The only source that may write its documents; null: no such restriction.
    source_id = models.UUIDField(null=True, blank=True)
    #: Ids without a row start at this version + 1; raised when tombstones are purged.
    version_floor = models.BigIntegerField(default=0)
    #: Increases with every change that affects writers: schema, rules, indexes, state.
    write_version = models.BigIntegerField(default=1)
    #: Increases when the access rules change; after-images contain it.
    rules_version = models.BigIntegerField(default=1)

    #: Whether it moves to the other backend, and how far it has got.
    move_stage = models.CharField(
        max_length=7, choices=MoveStage.choices, blank=True, default="", db_default=""
    )
    #: When it moved to its backend.
    moved_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "name"],
                condition=models.Q(state="active"),
                name="collection_name_unique",
            )
        ]

    @property
    def is_native(self) -> bool:
        """Whether its documents are in the storage node."""
        return self.backend == Backend.NATIVE

    def __str__(self) -> str:
        return self.name
