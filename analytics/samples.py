"""The sample dataset: two weeks of page views of a small site.

Its rows are uploaded and moved to the authority here, so the sample is already merged, and an
installation without other uploads needs no pipeline. A fixed seed makes the values the same in
every installation.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, cast
from uuid import UUID

from analytics.definitions import actions
from analytics.definitions.forms import DatasetCreation
from analytics.facts import DatasetFacts, facts_of
from analytics.models import Dataset
from foundation.api.bodies import read_body
from foundation.json_types import JsonObject
from foundation.scope import scoped
from tenants.models import Tenant

if TYPE_CHECKING:
    import pyarrow as pa

    from analytics.schema import AnalyticsTable

NAME = "visits"
DECLARATION: JsonObject = {
    "name": NAME,
    "id_keys": {"page": "string"},
    "tables": {
        "visits": {
            "columns": {
                "page": "id:page",
                "at": "timestamp",
                "visitor": "int64",
                "country": "string",
                "ms": "int64",
            },
            "key": ["page", "at", "visitor"],
            "views": {"by_visitor": {"key": ["visitor", "page", "at"]}},
        },
        "pages": {
            "columns": {"page": "id:page", "title": "string", "words": "int64"},
            "key": ["page"],
        },
    },
}
_TOPICS = ("tea", "rain", "harbours", "letters", "salt", "windows", "paper", "bridges")
_COUNTRIES = ("DE", "FR", "IN", "JP", "BR", "KE", "US", "PL")
_BEGIN = datetime(2026, 11, 1, tzinfo=UTC)
_DAYS, _VISITS_A_DAY, _VISITORS = 14, 1_500, 900
_SEED = 7


def load_sample(tenant_id: UUID) -> bool:
    """Load the sample if it is missing or has no uploads. Return whether it did."""
    with scoped(tenant_id=tenant_id):
        dataset = _ensure(tenant_id)
        facts = facts_of(dataset, 2**62) if not dataset.last_upload else None
    if facts is None:
        return False
    for number, batches in enumerate(_uploads(facts), start=1):
        _upload(facts, f"day-{number}", batches)
    _settle(facts)
    return True


def _ensure(tenant_id: UUID) -> Dataset:
    dataset = Dataset.objects.filter(name=NAME).first()
    if dataset is not None:
        return dataset
    values = cast("actions.DatasetValues", read_body(DatasetCreation, DECLARATION))
    tenant = Tenant.objects.select_related("plan", "quota").get(pk=tenant_id)
    return actions.do_create(None, tenant, values)


def _upload(
    facts: DatasetFacts, name: str, batches: list[tuple[AnalyticsTable, pa.RecordBatch]]
) -> None:
    # Columnar libraries are loaded only to create a sample.
    from analytics.ingest import uploads  # noqa: PLC0415
    from analytics.ingest.own_segments import write_segments  # noqa: PLC0415

    segments = write_segments(batches, facts.folder)
    with scoped(tenant_id=facts.tenant_id):
        uploads.do_upload(facts, name, name.encode(), segments)


def _settle(facts: DatasetFacts) -> None:
    """Move everything to the authority, and remove the output of earlier stages."""
    from analytics.pipeline.catalogue import Authority, open_catalogue  # noqa: PLC0415
    from analytics.pipeline.collector import collect  # noqa: PLC0415
    from analytics.pipeline.settle import settle  # noqa: PLC0415
    from analytics.pipeline.workers import ThreadWorkers  # noqa: PLC0415

    authority, workers = Authority(open_catalogue(), facts.id), ThreadWorkers()
    try:
        settle(workers, authority, facts.id)
    finally:
        workers.close()
    with scoped(tenant_id=facts.tenant_id):
        row = Dataset.objects.get(pk=facts.id)
        kept_s = row.retention_s
        # The earlier states were never queried.
        Dataset.objects.filter(pk=facts.id).update(retention_s=0)
    collect(authority, facts.id)
    with scoped(tenant_id=facts.tenant_id):
        Dataset.objects.filter(pk=facts.id).update(retention_s=kept_s)


def _uploads(facts: DatasetFacts) -> Iterator[list[tuple[AnalyticsTable, pa.RecordBatch]]]:
    """Yield the site's pages with its first day, then a day each."""
    rng = random.Random(_SEED)  # noqa: S311 -- not a secret
    pages = [f"/{topic}/{number}" for topic in _TOPICS for number in range(1, 26)]
    for day in range(_DAYS):
        batches = [_inserts(facts, "visits", _visits(rng, pages, day))]
        if day == 0:
            batches.insert(0, _inserts(facts, "pages", _titles(rng, pages)))
        yield batches


def _inserts(
    facts: DatasetFacts, table: str, columns: dict[str, list[object]]
) -> tuple[AnalyticsTable, pa.RecordBatch]:
    import pyarrow as pa  # noqa: PLC0415

    from analytics.ingest.operations import RowOperation, operations  # noqa: PLC0415

    schema = facts.tables[table]
    arrays = {
        name: pa.array(column, schema.sent.field(name).type) for name, column in columns.items()
    }
    rows = len(next(iter(arrays.values())))
    return schema, operations(schema, RowOperation.INSERT, arrays, rows)


def _titles(rng: random.Random, pages: list[str]) -> dict[str, list[object]]:
    return {
        "page": list(pages),
        "title": [f"On {page.split('/')[1]}, part {page.split('/')[2]}" for page in pages],
        "words": [rng.randrange(300, 3_000) for _ in pages],
    }


def _visits(rng: random.Random, pages: list[str], day: int) -> dict[str, list[object]]:
    count = _VISITS_A_DAY
    begin = _BEGIN + timedelta(days=day)
    return {
        # Some pages are viewed far more often than others.
        "page": [pages[int(len(pages) * rng.random() ** 3)] for _ in range(count)],
        "at": [begin + timedelta(seconds=rng.randrange(86_400)) for _ in range(count)],
        "visitor": [rng.randrange(_VISITORS) for _ in range(count)],
        "country": [rng.choice(_COUNTRIES) for _ in range(count)],
        "ms": [int(rng.lognormvariate(5.5, 0.7)) for _ in range(count)],
    }
