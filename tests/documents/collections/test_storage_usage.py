"""A tenant sees in its usage what its documents take."""

from __future__ import annotations

from documents.collections import storage_usage
from tests.caller import Caller, with_key
from tests.documents.collections import stored
from tests.make import MadeTenant, make_tenant


def usage(caller: Caller, made: MadeTenant) -> dict[str, int]:
    answer = caller.get(f"/api/v1/tenants/{made.slug}/usage")
    assert answer.status_code == 200, answer.text
    found = {item["metric"]: item["amount"] for item in answer.json()["items"]}
    return {name: found[name] for name in found if name.endswith("_hours")}


def test_documents_and_their_bytes_are_measured_once_an_hour(server: str) -> None:
    made = make_tenant()
    caller = with_key(server, made.admin_key)
    path = f"/api/v1/tenants/{made.slug}/collections"
    for name in ("kept", "dropped"):
        assert caller.post(path, {"name": name}).status_code == 201
        stored.put(made.tenant.id, name, [{"_id": n, "text": "x" * 1000} for n in range(10)])
    caller.delete(f"{path}/dropped")
    caller.delete('/v1/collections/kept/documents/~{"$numberInt":"0"}')

    storage_usage.sweep()

    measured = usage(caller, made)
    assert measured["document_hours"] == 9
    assert 9 * 1000 < measured["storage_byte_hours"] < 9 * 1100
    stored.put(made.tenant.id, "kept", [{"_id": "more"}])
    storage_usage.sweep()
    assert usage(caller, made) == measured
