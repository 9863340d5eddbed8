"""Datasets."""

from __future__ import annotations

from django.core.validators import RegexValidator
from django.db import models

from foundation.names import NAME_PATTERN
from foundation.resource import Resource
from foundation.scope import TenantOwned
from tenants.models import Tenant


class Dataset(TenantOwned, Resource):
    """Tables whose rows are uploaded together.

    Files and Iceberg tables are named after the id, so a dataset that is dropped and created again
    has new ones. The row is locked while an upload is committed or a stage ends.
    """

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="datasets")
    name = models.CharField(max_length=63, validators=[RegexValidator(rf"\A{NAME_PATTERN}\Z")])
    #: JSON text, since the order of columns is the caller's: `{"tables": …}`.
    definition = models.TextField()
    #: How long a state can be queried after a later one has replaced it.
    retention_s = models.PositiveIntegerField()
    #: The number of the newest committed upload, which identifies the newest state.
    last_upload = models.BigIntegerField(default=0)
    last_upload_at = models.DateTimeField(null=True, blank=True)
    #: The state of the authority. The pipeline has work while it lags behind.
    authority_state = models.BigIntegerField(default=0)
    #: The stored size of all stages together.
    stored_bytes = models.BigIntegerField(default=0)
    #: Fencing token: incremented by each process that takes over the pipeline. A process with a
    #: lower token has been replaced, and cannot end a stage.
    pipeline_token = models.BigIntegerField(default=0)
    #: Why the pipeline is stuck on this dataset, or empty.
    pipeline_error = models.TextField(blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "name"], name="dataset_name_unique")
        ]

    def __str__(self) -> str:
        return self.name
