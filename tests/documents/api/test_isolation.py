"""Another tenant's credentials give no access to any URL of the data plane."""

from __future__ import annotations

import psycopg
import pytest

from documents.api.operations import OPERATIONS
from documents.backend import Backend
from foundation.database_roles import DatabaseRole
from foundation.environment import environment
from tests.caller import Caller, with_key
from tests.documents.collection import CollectionClient, make_collection
from tests.make import make_key, make_tenant

MARK = "private-to-the-victim"
BODIES = {
    "documents_insert": {"stolen": True},
    "documents_replace": {"stolen": True},
    "documents_update": {"$set": {"stolen": True}},
    "documents_get_many": {"ids": ["a"]},
    "documents_bulk": {"operations": [{"delete": {"id": "a"}}]},
    "documents_update_by_filter": {"filter": {}, "update": {"$set": {"stolen": True}}},
    "documents_delete_by_filter": {"filter": {}},
}


@pytest.fixture(scope="module")
def victim(server: str, backend: Backend) -> CollectionClient:
    victim = make_collection(server, name="secrets", rules={"read": True, "update": True})
    victim.insert({"_id": "a", "text": MARK})
    return victim


def stranger(server: str, *, with_same_name: bool) -> Caller:
    """Return a caller of another tenant, which may have a collection of the same name."""
    account = make_tenant(plan="dedicated")
    if with_same_name:
        return make_collection(server, account=account, name="secrets").caller
    return with_key(server, make_key(account.tenant))


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda o: str(o.describes["operationId"]))
@pytest.mark.parametrize("with_same_name", [False, True])
def test_a_stranger_sees_and_changes_nothing(
    server: str,
    victim: CollectionClient,
    operation: object,
    with_same_name: bool,  # noqa: FBT001
) -> None:
    (match,) = (one for one in OPERATIONS if one is operation)
    name = str(match.describes["operationId"])
    path = match.path.replace("{collection}", "secrets").replace("{id}", "a")
    body: object = BODIES.get(name, {})
    if name == "transact":
        body = {"operations": [{"collection": "secrets", "delete": {"id": "a"}}]}
    if match.method in ("GET", "DELETE"):
        body = None
    caller = stranger(server, with_same_name=with_same_name)
    answer = caller.call(match.method, path, body)
    assert MARK not in answer.text
    if not with_same_name and name != "import":
        assert answer.status_code in (400, 403, 404), (name, answer.text)
    assert victim.query() == [{"_id": "a", "text": MARK}]
    assert victim.caller.get(f"{victim.path}/documents/a").json()["version"] == 1


@pytest.mark.backend("postgres", reason="it reads PostgreSQL's tables")
@pytest.mark.parametrize(
    "table", ["documents_document", "documents_indexentry", "documents_collection"]
)
def test_the_database_hides_other_tenants_rows_from_code_without_a_filter(
    victim: CollectionClient, table: str
) -> None:
    other = make_tenant().tenant
    with psycopg.connect(environment().role_url(DatabaseRole.APP)) as connection:
        for tenant, expected in ((other.id, False), (None, False)):
            connection.execute(
                "SELECT set_config('rillbase.tenant', %s, true)", (str(tenant or ""),)
            )
            row = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
            assert row is not None
            assert bool(row[0]) is expected, table


@pytest.mark.backend("postgres", reason="it reads PostgreSQL's tables")
def test_the_application_can_read_nothing_of_the_outbox(victim: CollectionClient) -> None:
    with psycopg.connect(environment().role_url(DatabaseRole.APP)) as connection:
        connection.execute(
            "SELECT set_config('rillbase.tenant', %s, true)", (str(victim.account.tenant.id),)
        )
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("SELECT count(*) FROM documents_outbox")
