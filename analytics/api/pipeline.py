"""GET pipeline: the progress of uploads, and how much a query would have to read."""

from __future__ import annotations

import datetime

from django.db.models import Max, Min, Sum
from django.utils import timezone

from analytics.api.dataset_access import dataset_of, in_scope
from analytics.api.upload_json import upload_shown
from analytics.facts import READ, DatasetFacts
from analytics.locations import namespace_of
from analytics.models import Dataset, Run, Upload
from analytics.query.files import StateSelector
from analytics.query.plan import covering_runs, plan
from analytics.table_definitions import read_definition
from data_plane.calls import Call
from data_plane.http import CallResponse, json_answer
from data_plane.request_reader import parameters
from foundation.json_types import JsonObject, JsonValue

#: The interval over which rates are measured, in seconds.
RATE_S = 60
RECENT = 20
FRESHNESSES: tuple[float | None, ...] = (None, 15.0, 10.0, 5.0, 0.0)


async def read(call: Call) -> CallResponse:
    """GET pipeline."""
    parameters(call)
    dataset = await dataset_of(call, READ)
    return json_answer(await in_scope(call, lambda: _describe(dataset)))


def _describe(dataset: DatasetFacts) -> JsonObject:
    row = Dataset.objects.get(pk=dataset.id)
    runs = list(Run.objects.filter(dataset=row, superseded_at=None).order_by("first"))
    sorted_state = runs[-1].last if runs else 0
    reads: list[JsonValue] = [_read_estimate(dataset, freshness) for freshness in FRESHNESSES]
    recent = Upload.objects.filter(dataset=row, number__isnull=False).order_by("-number")[:RECENT]
    uploads: list[JsonValue] = [upload_shown(u, _run_of(runs, u)) for u in recent]
    return {
        "state": row.last_upload,
        "authority_state": row.authority_state,
        "error": row.pipeline_error or None,
        "stages": {
            "unsorted": _unsorted(row, sorted_state),
            **{
                stage: _stage(row, [run for run in runs if run.stage == stage], stage)
                for stage in Run.Stage.values
                if stage != Run.Stage.REMAPPED or read_definition(row.definition)["id_keys"]
            },
        },
        "reads": reads,
        "uploads": uploads,
        "iceberg": {
            "namespace": namespace_of(dataset.id),
            "tag": f"state-{row.authority_state}" if row.authority_state else None,
        },
    }


def _unsorted(row: Dataset, sorted_state: int) -> JsonObject:
    uploads = Upload.objects.filter(dataset=row, number__gt=sorted_state)
    totals = uploads.aggregate(
        rows=Sum("rows"), bytes=Sum("bytes"), first=Min("number"), last=Max("number")
    )
    since = timezone.now() - datetime.timedelta(seconds=RATE_S)
    recent = Upload.objects.filter(dataset=row, committed_at__gte=since)
    return {
        "first": totals["first"],
        "last": totals["last"],
        "rows": totals["rows"] or 0,
        "bytes": totals["bytes"] or 0,
        "lag_s": 0.0,
        "rows_per_s": _rate(recent.aggregate(rows=Sum("rows"))["rows"]),
    }


def _stage(row: Dataset, runs: list[Run], stage: str) -> JsonObject:
    since = timezone.now() - datetime.timedelta(seconds=RATE_S)
    recent = Run.objects.filter(dataset=row, stage=stage, created_at__gte=since)
    if stage == Run.Stage.AUTHORITY:
        # A run of the authority counts all of its rows, so count those of the uploads that entered.
        before = Run.objects.filter(dataset=row, stage=stage, created_at__lt=since)
        last = before.aggregate(last=Max("last"))["last"] or 0
        entered = Upload.objects.filter(
            dataset=row, number__gt=last, number__lte=row.authority_state
        )
        count = entered.aggregate(rows=Sum("rows"))["rows"]
    else:
        count = recent.aggregate(rows=Sum("rows"))["rows"]
    return {
        "first": runs[0].first if runs else None,
        "last": runs[-1].last if runs else None,
        "rows": sum(run.rows for run in runs),
        "bytes": sum(run.bytes for run in runs),
        "lag_s": _lag_s(row, stage),
        "rows_per_s": _rate(count),
    }


def _lag_s(row: Dataset, stage: str) -> float:
    """Return the age of the oldest upload that has not reached a stage."""
    in_stage = Run.objects.filter(dataset=row, superseded_at=None)
    if stage == Run.Stage.AUTHORITY:
        in_stage = in_stage.filter(stage=stage)
    elif stage == Run.Stage.MERGED:
        in_stage = in_stage.exclude(stage__in=(Run.Stage.REMAPPED, Run.Stage.SORTED))
    elif stage == Run.Stage.SORTED:
        in_stage = in_stage.exclude(stage=Run.Stage.REMAPPED)
    _, sorted_state = covering_runs(in_stage, row.last_upload)
    oldest = Upload.objects.filter(dataset=row, number=sorted_state + 1).first()
    if oldest is None or oldest.committed_at is None:
        return 0.0
    return round((timezone.now() - oldest.committed_at).total_seconds(), 3)


def _read_estimate(dataset: DatasetFacts, freshness: float | None) -> JsonObject:
    """Return how much queries with this freshness would read, over all tables."""
    selector = (
        StateSelector(any=True) if freshness is None else StateSelector(freshness_s=freshness)
    )
    plans = [plan(dataset, table, selector) for table in dataset.tables]
    files: dict[str, int] = {}
    rows = 0
    for one in plans:
        for file in [*(f for f in one.authority if f.view == ""), *one.later]:
            files[file.stage] = files.get(file.stage, 0) + 1
            rows += file.rows
    counted: JsonObject = dict(files)
    return {
        "freshness": "any" if freshness is None else freshness,
        "state": max((one.state for one in plans), default=0),
        "files": counted,
        "rows": rows,
    }


def _run_of(runs: list[Run], upload: Upload) -> Run | None:
    number = upload.number or 0
    return next((run for run in runs if run.first <= number <= run.last), None)


def _rate(rows: int | None) -> float:
    return round((rows or 0) / RATE_S, 1)
