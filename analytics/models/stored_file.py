"""Files, which never change."""

from __future__ import annotations

from django.db import models

from analytics.models.dataset import Dataset
from analytics.models.run import Run
from analytics.models.upload import Upload
from foundation.ids import uuid7
from foundation.scope import TenantOwned
from tenants.models import Tenant


class FileStage(models.TextChoices):
    """The stage of a file's rows."""

    UNSORTED = "unsorted"
    REMAPPED = "remapped"
    SORTED = "sorted"
    MERGED = "merged"
    AUTHORITY = "authority"


class StoredFile(TenantOwned):
    """A file of one table, or of one of its views.

    An unsorted file belongs to an upload, a sorted or merged file to a run. A file of the authority
    belongs to the states from `since` to before `until`.

    For each ID-key, a part of an upload has a list of its keys; temporary ids are indexes into it.
    A remapped run has the final ids of all these entries, and the keys that are new as rows of the
    ID-key's table.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="+")
    dataset = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="files")
    stage = models.CharField(max_length=10, choices=FileStage.choices)
    upload = models.ForeignKey(Upload, on_delete=models.CASCADE, null=True, related_name="files")
    run = models.ForeignKey(Run, on_delete=models.CASCADE, null=True, related_name="files")
    since = models.BigIntegerField(null=True, blank=True)
    until = models.BigIntegerField(null=True, blank=True)
    #: For an upload: 0, 1, 2, … in the order in which its parts arrived. Files of one part share a
    #: number.
    part_number = models.PositiveIntegerField(default=0, db_column="place")
    #: Empty for a file of keys, or of ids of keys.
    table = models.CharField(max_length=63, blank=True)
    #: The ID-key of a file of keys or ids.
    id_key = models.CharField(max_length=63, blank=True)
    #: Empty for the primary view.
    view = models.CharField(max_length=63, blank=True)
    #: Relative to the dataset's folder.
    path = models.TextField()
    rows = models.BigIntegerField()
    bytes = models.BigIntegerField()
    #: JSON lists: the least and greatest key of a sorted file.
    lowest = models.TextField(blank=True)
    highest = models.TextField(blank=True)
    #: The caller's idempotency key for a part of an upload.
    part = models.CharField(max_length=200, blank=True)
    #: When the file stopped being part of the current state; null while it is part of it.
    superseded_at = models.DateTimeField(null=True, blank=True, db_index=True)

    class Meta:
        indexes = [
            models.Index(fields=["dataset", "stage", "since"], name="file_by_stage"),
        ]
