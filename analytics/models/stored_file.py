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

    An unsorted one belongs to an upload, a sorted or merged one to a run. One of the authority
    belongs to the states from `since` up to, and without, `until`.

    Beside the segments of an upload's part lies for each ID-key the list of the part's keys, to
    whose entries their temporary ids point. A remapped run has for each ID-key the ids of all these
    entries, and for the table of the ID-key those keys that are new.
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
    place = models.PositiveIntegerField(default=0)
    #: Empty: it holds keys, or ids for keys.
    table = models.CharField(max_length=63, blank=True)
    #: The ID-key of such a file.
    id_key = models.CharField(max_length=63, blank=True)
    #: Empty: the primary view.
    view = models.CharField(max_length=63, blank=True)
    #: Relative to the dataset's folder.
    path = models.TextField()
    rows = models.BigIntegerField()
    bytes = models.BigIntegerField()
    #: JSON lists: the least and greatest key of a sorted file.
    lowest = models.TextField(blank=True)
    highest = models.TextField(blank=True)
    #: The caller's key for an upload's part, so that it counts once.
    part = models.CharField(max_length=200, blank=True)
    #: When it stopped being part of a current state; null: it is part of one.
    superseded_at = models.DateTimeField(null=True, blank=True, db_index=True)

    class Meta:
        indexes = [
            models.Index(fields=["dataset", "stage", "since"], name="file_by_stage"),
        ]
