"""The sample dataset is created once, merged, and left alone if it has been changed."""

from __future__ import annotations

from foundation.scope import scoped
from tests.caller import with_key
from tests.make import make_tenant


def test_the_sample_is_loaded_once_into_the_authority(server: str) -> None:
    from analytics.models import Dataset, FileStage, StoredFile
    from analytics.samples import load_sample
    from tests.analytics.dataset_client import files_of

    account = make_tenant(plan="standard")
    assert load_sample(account.tenant.id)
    caller = with_key(server, account.admin_key)
    body = {
        "table": "visits",
        "group_by": ["page"],
        "aggregates": {"visits": {"op": "count"}},
        "order": [["visits", -1]],
        "limit": 1,
        "freshness": "any",
    }
    answer = caller.post("/v1/datasets/visits/query", body).json()
    assert answer["state"] == 14
    assert answer["rows"][0]["page"] == "/tea/1"
    assert not load_sample(account.tenant.id), "it has been uploaded to"
    with scoped(tenant_id=account.tenant.id):
        row = Dataset.objects.get()
        assert row.retention_s > 0
        assert set(StoredFile.objects.values_list("stage", flat=True)) == {FileStage.AUTHORITY}
    folder = files_of(row.pk)
    left = [path for path in folder.glob("*/*") if path.parent.name not in ("authority", "iceberg")]
    assert left == [], "whoever looks for work finds none"
