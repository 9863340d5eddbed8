"""A tenant's usage includes the size of its documents."""

from __future__ import annotations

from documents.collections import storage_usage
from tests.caller import Caller, with_key
from tests.documents.collections import stored_documents
from tests.make import TenantAccount, make_tenant


def usage(caller: Caller, account: TenantAccount) -> dict[str, int]:
    answer = caller.get(f"/api/v1/tenants/{account.slug}/usage")
    assert answer.status_code == 200, answer.text
    result = {item["metric"]: item["amount"] for item in answer.json()["items"]}
    return {name: result[name] for name in result if name.endswith("_hours")}


def test_documents_and_their_bytes_are_measured_once_an_hour(server: str) -> None:
    account = make_tenant()
    caller = with_key(server, account.admin_key)
    path = f"/api/v1/tenants/{account.slug}/collections"
    for name in ("kept", "dropped"):
        assert caller.post(path, {"name": name}).status_code == 201
        stored_documents.put(
            account.tenant.id, name, [{"_id": n, "text": "x" * 1000} for n in range(10)]
        )
    caller.delete(f"{path}/dropped")
    caller.delete('/v1/collections/kept/documents/~{"$numberInt":"0"}')

    storage_usage.sweep()

    measured = usage(caller, account)
    assert measured["document_hours"] == 9
    assert 9 * 1000 < measured["storage_byte_hours"] < 9 * 1100
    stored_documents.put(account.tenant.id, "kept", [{"_id": "more"}])
    storage_usage.sweep()
    assert usage(caller, account) == measured
