"""The sample dataset: there once, merged, and left alone where somebody has used it."""

from __future__ import annotations

from foundation.scope import scoped
from tests.caller import with_key
from tests.make import make_tenant


def test_the_sample_is_loaded_once_and_lies_in_the_authority(server: str) -> None:
    from analytics.models import Dataset, FileStage, StoredFile
    from analytics.samples import load_sample
    from tests.analytics.made import files_of

    made = make_tenant(plan="standard")
    assert load_sample(made.tenant.id)
    caller = with_key(server, made.admin_key)
    asked = {
        "table": "visits",
        "group_by": ["page"],
        "aggregates": {"visits": {"op": "count"}},
        "order": [["visits", -1]],
        "limit": 1,
        "freshness": "any",
    }
    answer = caller.post("/v1/datasets/visits/query", asked).json()
    assert answer["state"] == 14
    assert answer["rows"][0]["page"] == "/tea/1"
    assert not load_sample(made.tenant.id), "it has been uploaded to"
    with scoped(tenant_id=made.tenant.id):
        row = Dataset.objects.get()
        assert row.retention_s > 0
        assert set(StoredFile.objects.values_list("stage", flat=True)) == {FileStage.AUTHORITY}
    folder = files_of(row.pk)
    left = [path for path in folder.glob("*/*") if path.parent.name not in ("authority", "iceberg")]
    assert left == [], "whoever looks for work finds none"
