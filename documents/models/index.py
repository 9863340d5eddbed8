"""Declared indexes of collections."""

from __future__ import annotations

from django.db import models

from documents.models.collection import Collection
from documents.technique import DeclaredTechnique
from foundation.scope import TenantOwned


class Index(TenantOwned):
    """An index over fields of a collection. Its entries are rows, so no DDL is ever needed.

    Writers maintain the entries of an index as soon as it is `building`; queries use it once it is
    `ready`, when the backfill has processed all older documents.
    """

    class State(models.TextChoices):
        BUILDING = "building"
        READY = "ready"
        #: Documents violate it; `error` names one of them.
        FAILED = "failed"
        DROPPING = "dropping"

    #: The index's number in its entries. A number is never reused.
    number = models.BigAutoField(primary_key=True)
    tenant = models.ForeignKey("tenants.Tenant", on_delete=models.CASCADE, related_name="+")
    collection = models.ForeignKey(Collection, on_delete=models.CASCADE, related_name="indexes")
    name = models.CharField(max_length=63)
    #: `[["field", 1 | -1], …]`
    fields = models.JSONField()
    unique = models.BooleanField(default=False)
    technique = models.CharField(
        max_length=9,
        choices=[(technique, technique) for technique in DeclaredTechnique],
        default=DeclaredTechnique.AUTO,
        db_default=DeclaredTechnique.AUTO,
    )
    #: The technique of an automatic index; empty: that of a new one.
    chosen_technique = models.CharField(
        max_length=9,
        choices=[(technique, technique) for technique in DeclaredTechnique],
        blank=True,
        default="",
        db_default="",
    )
    #: The index with another technique whose place this one takes once it is ready. Until then,
    #: callers do not see it.
    replaces = models.ForeignKey(
        "self", null=True, on_delete=models.CASCADE, related_name="replacements"
    )
    #: How an automatic index had been used at a time (`documents.collections.technique_advisor`).
    counters = models.JSONField(null=True)
    counters_at = models.DateTimeField(null=True)
    #: `{"technique", "gain", "since", "use"}`; None: it was not used enough.
    advice = models.JSONField(null=True)
    state = models.CharField(max_length=10, choices=State.choices, default=State.BUILDING)
    documents_done = models.BigIntegerField(default=0)
    documents_total = models.BigIntegerField(default=0)
    #: The backfill resumes after this document key.
    position = models.BinaryField(null=True)
    error = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["collection", "name"],
                condition=models.Q(replaces=None) & ~models.Q(state="dropping"),
                name="index_name_unique",
            )
        ]

    @property
    def technique_in_use(self) -> DeclaredTechnique:
        """How its entries are stored."""
        return DeclaredTechnique(self.chosen_technique or self.technique).initial
