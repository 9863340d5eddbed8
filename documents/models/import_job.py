"""Imports of many documents, line by line."""

from __future__ import annotations

from django.db import models

from documents.models.collection import Collection
from foundation.ids import uuid7
from foundation.scope import TenantOwned


class ImportJob(TenantOwned):
    """The progress of an import. The counts include only committed writes."""

    class Mode(models.TextChoices):
        INSERT = "insert"
        UPSERT = "upsert"
        SKIP = "skip"

    class State(models.TextChoices):
        RUNNING = "running"
        #: The stream was interrupted; sending it again with `resume` continues after `lines_done`.
        INTERRUPTED = "interrupted"
        DONE = "done"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant = models.ForeignKey("tenants.Tenant", on_delete=models.CASCADE, related_name="+")
    collection = models.ForeignKey(Collection, on_delete=models.CASCADE, related_name="+")
    mode = models.CharField(max_length=6, choices=Mode.choices)
    state = models.CharField(max_length=12, choices=State.choices, default=State.RUNNING)
    lines_done = models.BigIntegerField(default=0)
    written = models.BigIntegerField(default=0)
    skipped = models.BigIntegerField(default=0)
    failed = models.BigIntegerField(default=0)
    #: The first errors: `[{"line", "code", "detail", "pointer"}, …]`, in JSON also `column`.
    errors = models.JSONField(default=list)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)
