"""An upload as the API shows it."""

from __future__ import annotations

from analytics.models import FileStage, Run, Upload
from foundation.api.rendering import timestamp
from foundation.json_types import JsonObject


def upload_shown(upload: Upload, run: Run | None) -> JsonObject:
    """Return an upload as JSON. `run` is the current run that contains it, if it is sorted."""
    stage = None
    if upload.number is not None:
        stage = run.stage if run is not None else FileStage.UNSORTED.value
    return {
        "id": upload.name,
        "status": upload.state,
        "state": upload.number,
        "stage": stage,
        "rows": upload.rows,
        "bytes": upload.bytes,
        "created_at": timestamp(upload.created_at),
        "committed_at": None if upload.committed_at is None else timestamp(upload.committed_at),
    }
