"""Uploads in PostgreSQL.

An upload's rows become visible with its number, which is assigned under the lock of the dataset's
row, so numbers have no gaps and every state is a prefix. All functions run within a transaction of
the tenant.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable

from django.db.models import F, Max
from django.utils import timezone

from analytics.facts import DatasetFacts
from analytics.ingest.segments import UploadSegment
from analytics.models import Dataset, FileStage, StoredFile, Upload
from foundation.errors import Conflict, IdempotencyMismatch, NotFound, QuotaExceeded


def find(dataset: DatasetFacts, name: str, *, lock: bool = False) -> Upload:
    """Return an upload, or raise `NotFound`."""
    rows = Upload.objects.select_for_update() if lock else Upload.objects.all()
    upload = rows.filter(dataset_id=dataset.id, name=name).first()
    if upload is None:
        raise NotFound("The upload does not exist.")
    return upload


def find_optional(dataset: DatasetFacts, name: str) -> Upload | None:
    return Upload.objects.filter(dataset_id=dataset.id, name=name).first()


def do_open(dataset: DatasetFacts, name: str) -> tuple[Upload, bool]:
    """Open an upload. Return it, and whether it is new: the call may be repeated."""
    row = _lock(dataset)
    upload = find_optional(dataset, name)
    if upload is None:
        return Upload.objects.create(dataset=row, name=name), True
    if upload.state != Upload.State.OPEN:
        raise Conflict(f"The upload has been {upload.state}.")
    return upload, False


def do_upload(
    dataset: DatasetFacts, name: str, digest: bytes, segments: Iterable[UploadSegment]
) -> tuple[Upload, bool]:
    """Commit an upload sent in one request. Return it, and whether it is new."""
    row = _lock(dataset)
    earlier = find_optional(dataset, name)
    if earlier is not None:
        return check_repeated(earlier, digest), False
    upload = Upload.objects.create(dataset=row, name=name, digest=digest)
    _add(dataset, row, upload, segments, "")
    _commit(row, upload)
    return upload, True


def check_repeated(upload: Upload, digest: bytes) -> Upload:
    """Return the earlier upload if its body has this digest, or raise."""
    if upload.digest is None or bytes(upload.digest) != digest:
        raise IdempotencyMismatch("The upload id was already used for different rows.")
    return upload


def do_append(
    dataset: DatasetFacts, name: str, key: str, part: str, segments: Iterable[UploadSegment]
) -> tuple[Upload, bool]:
    """Append to an open upload. Return it, and whether the part is new: it may be sent twice.

    `part` begins with `key`, if the caller gave one, followed by the part's contents.
    """
    row = _lock(dataset)
    upload = find(dataset, name, lock=True)
    if key:
        earlier = StoredFile.objects.filter(upload=upload, part__startswith=f"{key}:").first()
        if earlier is not None and earlier.part != part:
            raise IdempotencyMismatch("The idempotency key was already used for different rows.")
        if earlier is not None:
            return upload, False
    if upload.state != Upload.State.OPEN:
        raise Conflict(f"The upload has been {upload.state}.")
    _add(dataset, row, upload, segments, part)
    upload.save(update_fields=["rows", "bytes"])
    return upload, True


def do_commit(dataset: DatasetFacts, name: str) -> Upload:
    """Assign an open upload its number. One that is already committed stays unchanged."""
    row = _lock(dataset)
    upload = find(dataset, name, lock=True)
    if upload.state == Upload.State.ABORTED:
        raise Conflict("The upload has been aborted.")
    if upload.state == Upload.State.OPEN:
        _commit(row, upload)
    return upload


def do_abort(dataset: DatasetFacts, name: str) -> tuple[Upload, list[str]]:
    """Abort an open upload. Return it, and the files to be removed."""
    _lock(dataset)
    upload = find(dataset, name, lock=True)
    if upload.state == Upload.State.COMMITTED:
        raise Conflict("The upload has been committed.")
    files = StoredFile.objects.filter(upload=upload)
    paths = list(files.values_list("path", flat=True))
    Dataset.objects.filter(pk=dataset.id).update(stored_bytes=F("stored_bytes") - upload.bytes)
    files.delete()
    upload.state, upload.rows, upload.bytes = Upload.State.ABORTED, 0, 0
    upload.save(update_fields=["state", "rows", "bytes"])
    return upload, paths


def _lock(dataset: DatasetFacts) -> Dataset:
    row = Dataset.objects.select_for_update().filter(pk=dataset.id).first()
    if row is None:
        raise NotFound("The dataset has been dropped.")
    return row


def _add(
    facts: DatasetFacts,
    dataset: Dataset,
    upload: Upload,
    segments: Iterable[UploadSegment],
    part: str,
) -> None:
    last = StoredFile.objects.filter(upload=upload).aggregate(number=Max("part_number"))["number"]
    part_number = 0 if last is None else last + 1
    files = [
        StoredFile(
            tenant_id=dataset.tenant_id,
            dataset=dataset,
            stage=FileStage.UNSORTED,
            upload=upload,
            part_number=part_number,
            table=segment.table,
            id_key=segment.id_key,
            path=segment.path,
            rows=segment.rows,
            bytes=segment.bytes,
            part=part,
        )
        for segment in segments
    ]
    added = sum(file.bytes for file in files)
    if dataset.stored_bytes + added > facts.max_bytes:
        raise QuotaExceeded(
            f"The tenant's quota allows at most {facts.max_bytes} bytes per dataset."
        )
    StoredFile.objects.bulk_create(files)
    upload.rows += sum(file.rows for file in files if file.table)
    upload.bytes += added
    dataset.stored_bytes += added
    dataset.save(update_fields=["stored_bytes"])


def _commit(dataset: Dataset, upload: Upload) -> None:
    dataset.last_upload += 1
    dataset.last_upload_at = _after(dataset.last_upload_at)
    dataset.save(update_fields=["last_upload", "last_upload_at"])
    upload.number, upload.committed_at = dataset.last_upload, dataset.last_upload_at
    upload.state = Upload.State.COMMITTED
    upload.save()


def _after(last: datetime.datetime | None) -> datetime.datetime:
    """Return the current time, or the last commit's time if the clock was set back."""
    now = timezone.now()
    return now if last is None else max(now, last)
