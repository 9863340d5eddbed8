"""Removes files that no state needs any more, and leftovers of unfinished work.

A file is removed when its replacement has been in force for longer than the dataset keeps states.
Unreferenced files, left by a process that died, are found by their age: longer than any upload or
stage takes.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Iterable
from uuid import UUID

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from analytics.catalogue_lock import catalogue_lock
from analytics.locations import folder_of, root
from analytics.models import Dataset, Run, StoredFile, Upload
from analytics.pipeline.catalogue import Authority
from analytics.pipeline.ledger import ALIAS
from analytics.requests import folder_for
from analytics.rows.file_store import StoredPath, files_in

#: Age at which open uploads and unreferenced files are removed.
ABANDONED_S = 24 * 3600
#: Age at which unused Iceberg metadata is removed; its snapshots are removed earlier.
METADATA_KEPT_S = 3600
#: How long the name of an aborted upload cannot be reused.
NAMES_KEPT_S = 7 * 24 * 3600
_FOLDERS = (
    "incoming",
    "segments",
    "remapped",
    "sorted",
    "merged",
    "changes",
    "authority",
    "results",
)


def datasets_with_leftovers() -> set[UUID]:
    """Return the datasets that may have something to remove."""
    before = timezone.now() - datetime.timedelta(seconds=ABANDONED_S)
    files = StoredFile.unscoped.using(ALIAS).filter(superseded_at__isnull=False)
    runs = Run.unscoped.using(ALIAS).filter(superseded_at__isnull=False)
    uploads = Upload.unscoped.using(ALIAS).filter(state=Upload.State.OPEN, created_at__lt=before)
    return {
        dataset_id
        for rows in (files, runs, uploads)
        for dataset_id in rows.values_list("dataset_id", flat=True).distinct()
    }


def collect(authority: Authority, dataset_id: UUID) -> int:
    """Remove what a dataset no longer needs. Return how many files were removed."""
    row = Dataset.unscoped.using(ALIAS).filter(pk=dataset_id).first()
    if row is None:
        return 0
    now = timezone.now()
    _forget_states(authority, row, now - datetime.timedelta(seconds=row.retention_s))
    _abandon_uploads(row, now - datetime.timedelta(seconds=ABANDONED_S))
    return _remove_superseded(row, now - datetime.timedelta(seconds=row.retention_s))


def sweep(authority: Authority, dataset_id: UUID) -> int:
    """Remove unreferenced files. Return how many there were."""
    _forget_uploads(dataset_id, timezone.now() - datetime.timedelta(seconds=NAMES_KEPT_S))
    folder = folder_of(dataset_id)
    folders = [*(folder / name for name in _FOLDERS), folder_for(root(), dataset_id)]
    old_files = _written_before(folders, time.time() - ABANDONED_S)
    files = StoredFile.unscoped.using(ALIAS).filter(dataset_id=dataset_id)
    paths = files.values_list("path", flat=True) if old_files else ()
    referenced = {str(folder / path) for path in paths}
    leftovers = [path for path in old_files if str(path) not in referenced]
    leftovers += _unused_metadata(authority, dataset_id)
    for path in leftovers:
        path.unlink(missing_ok=True)
    return len(leftovers)


def _unused_metadata(authority: Authority, dataset_id: UUID) -> list[StoredPath]:
    """Return metadata files of snapshots that were removed or never committed."""
    folder = folder_of(dataset_id) / "iceberg"
    old_files = _written_before([folder], time.time() - METADATA_KEPT_S)
    # Files are listed before references are read, so a new file cannot look unused.
    referenced = authority.metadata_files() if old_files else set()
    return [path for path in old_files if path.as_uri() not in referenced]


def _written_before(folders: Iterable[StoredPath], before: float) -> list[StoredPath]:
    return [path for folder in folders for path, time_s in files_in(folder) if time_s < before]


def _forget_states(authority: Authority, row: Dataset, before: datetime.datetime) -> None:
    """Delete runs that were replaced long ago, those of the authority with their tags."""
    runs = Run.unscoped.using(ALIAS).filter(dataset=row, superseded_at__lt=before)
    for run in runs.filter(stage=Run.Stage.AUTHORITY):
        with catalogue_lock(row.pk):
            authority.forget(run.last, run.snapshots)
            run.delete(using=ALIAS)


def _abandon_uploads(row: Dataset, before: datetime.datetime) -> None:
    uploads = Upload.unscoped.using(ALIAS).filter(
        dataset=row, state=Upload.State.OPEN, created_at__lt=before
    )
    with transaction.atomic(using=ALIAS):
        Dataset.unscoped.using(ALIAS).select_for_update().filter(pk=row.pk).first()
        for upload in uploads.select_for_update():
            files = StoredFile.unscoped.using(ALIAS).filter(upload=upload)
            files.update(superseded_at=before)
            upload.state, upload.rows, upload.bytes = Upload.State.ABORTED, 0, 0
            upload.save(using=ALIAS)


def _remove_superseded(row: Dataset, before: datetime.datetime) -> int:
    """Remove files: first delete their rows, so that none can be handed out, then the files."""
    with transaction.atomic(using=ALIAS):
        files = StoredFile.unscoped.using(ALIAS).filter(dataset=row, superseded_at__lt=before)
        superseded = list(files.values_list("pk", "path", "bytes"))
        if superseded:
            StoredFile.unscoped.using(ALIAS).filter(pk__in=[pk for pk, _, _ in superseded]).delete()
            freed = sum(size for _, _, size in superseded)
            Dataset.unscoped.using(ALIAS).filter(pk=row.pk).update(
                stored_bytes=F("stored_bytes") - freed
            )
        runs = Run.unscoped.using(ALIAS).filter(dataset=row, superseded_at__lt=before)
        runs.exclude(stage=Run.Stage.AUTHORITY).delete()
    folder = folder_of(row.pk)
    for _, path, _ in superseded:
        (folder / path).unlink(missing_ok=True)
    return len(superseded)


def _forget_uploads(dataset_id: UUID, before: datetime.datetime) -> None:
    """Delete aborted uploads. Committed ones stay: they record when each state was committed."""
    uploads = Upload.unscoped.using(ALIAS).filter(dataset_id=dataset_id)
    uploads.filter(state=Upload.State.ABORTED, created_at__lt=before).delete()
