"""PostgreSQL's disk is full: every protocol reports that to callers, and service resumes
afterwards.

The tables that tests fill lie in a tablespace on a small file system of its own.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import psycopg
import pytest
import requests
from psycopg import sql

from rillbase_server.launcher.account import private_directory, server_account
from tests.caller import signed_in, with_key
from tests.documents.collection import CollectionClient, make_collection
from tests.launcher_command import reachable_directory
from tests.make import make_key, make_tenant
from tests.realtime.client import greeted
from tests.rillbase_server.graphql.graphql_caller import GraphqlCaller
from tests.small_disk import SmallDisk, small_disk

MIB = 1024 * 1024
TABLES = ("documents_document", "documents_collection", "tenants_auditentry")


#: What the tests write until it is full, in MiB.
ROOM_MIB = 24


@pytest.fixture(scope="module")
def disk(postgres_url: str) -> Iterator[SmallDisk]:
    """Move the tables, with what earlier tests have left in them, to a small disk and back."""
    with psycopg.connect(postgres_url, autocommit=True) as admin, ExitStack() as stack:
        stack.callback(_vacuum_by_itself, admin)
        _leave_no_room(admin)
        folder = stack.enter_context(reachable_directory())
        disk = stack.enter_context(small_disk(folder / "disk", ROOM_MIB + _size_mib(admin)))
        folder_of_tables = private_directory(disk.path / "tables", server_account())
        # All test processes share one PostgreSQL.
        tablespace = f"small_{secrets.token_hex(8)}"
        name = sql.Identifier(tablespace)
        location = sql.Literal(str(folder_of_tables))
        admin.execute(sql.SQL("CREATE TABLESPACE {} LOCATION {}").format(name, location))
        try:
            _move(admin, tablespace)
            yield disk
        finally:
            disk.empty()
            _move(admin, "pg_default")
            admin.execute(sql.SQL("DROP TABLESPACE {}").format(name))


def _size_mib(admin: psycopg.Connection) -> int:
    sizes = "SELECT sum(pg_table_size(name::regclass)) FROM unnest(%s::text[]) AS name"
    row = admin.execute(sizes, (list(TABLES),)).fetchone()
    return 0 if row is None else int(row[0]) // MIB


def _move(admin: psycopg.Connection, tablespace: str) -> None:
    for table in TABLES:
        admin.execute(
            sql.SQL("ALTER TABLE {} SET TABLESPACE {}").format(
                sql.Identifier(table), sql.Identifier(tablespace)
            )
        )


def _leave_no_room(admin: psycopg.Connection) -> None:
    """Take the room of deleted rows, and let none become free: writes would fit."""
    for table in TABLES:
        name = sql.Identifier(table)
        off = "autovacuum_enabled = false, toast.autovacuum_enabled = false"
        admin.execute(sql.SQL(f"ALTER TABLE {{}} SET ({off})").format(name))
        admin.execute(sql.SQL("VACUUM FULL {}").format(name))


def _vacuum_by_itself(admin: psycopg.Connection) -> None:
    for table in TABLES:
        options = "autovacuum_enabled, toast.autovacuum_enabled"
        admin.execute(sql.SQL(f"ALTER TABLE {{}} RESET ({options})").format(sql.Identifier(table)))


@pytest.fixture
def full(disk: SmallDisk, things: CollectionClient) -> Iterator[SmallDisk]:
    disk.fill()
    yield disk
    disk.empty()


@pytest.fixture
def things(server: str) -> CollectionClient:
    collection = make_collection(server)
    collection.insert({"_id": "small"})
    return collection


def _document(key: object = None) -> dict[str, object]:
    """Return a document that does not fit on a page, however well it is compressed."""
    text = secrets.token_hex(100_000)
    return {"text": text} if key is None else {"_id": key, "text": text}


def _assert_full(answer: requests.Response) -> None:
    assert answer.status_code == 507, answer.text
    problem = answer.json()
    assert problem["code"] == "storage_full"
    assert "disk is full" in problem["detail"]
    assert int(answer.headers["Retry-After"]) > 0


def test_writes_by_rest_are_rejected_until_there_is_space_and_reads_continue(
    full: SmallDisk, things: CollectionClient
) -> None:
    for path, body in (
        ("documents", _document()),
        ("documents:bulk", {"operations": [{"insert": _document()}]}),
        ("documents:bulk", {"operations": [{"insert": _document()}], "ordered": False}),
    ):
        _assert_full(things.caller.post(f"{things.path}/{path}", body))
    operation = {"collection": things.name, "insert": _document()}
    _assert_full(things.caller.post("/v1/transactions", {"operations": [operation]}))
    assert things.ids() == ["small"]
    full.empty()
    assert things.insert(_document("large"))["version"] == 1


def test_a_call_rejected_by_a_full_disk_can_be_retried_with_its_idempotency_key(
    full: SmallDisk, things: CollectionClient
) -> None:
    path, body = f"{things.path}/documents", _document("once")
    _assert_full(things.caller.post(path, body, Idempotency_Key="again"))
    full.empty()
    first = things.caller.post(path, body, Idempotency_Key="again")
    second = things.caller.post(path, body, Idempotency_Key="again")
    assert (first.status_code, second.status_code) == (201, 201)
    assert second.headers["Idempotency-Replayed"] == "true"


def test_an_import_stopped_by_a_full_disk_resumes_at_the_first_unwritten_line(
    full: SmallDisk, things: CollectionClient
) -> None:
    lines = b"".join(json.dumps(_document(n)).encode() + b"\n" for n in range(50))
    path, media_type = f"{things.path}/import", "application/x-ndjson"
    full.empty()
    full.fill(leave_bytes=6 * 1024 * 1024)
    _assert_full(things.caller.call("POST", path, raw=lines, Content_Type=media_type))
    (job,) = things.caller.get(f"{things.path}/imports").json()["items"]
    assert (job["state"], job["errors"]) == ("interrupted", [])
    assert 0 < job["written"] < 50
    full.empty()
    resumed = things.caller.call(
        "POST", f"{path}?resume={job['id']}", raw=lines, Content_Type=media_type
    )
    assert resumed.json()["state"] == "done"
    assert resumed.json()["written"] == 50


@pytest.mark.usefixtures("full")
def test_a_write_over_a_websocket_is_rejected_and_the_connection_stays_open(
    server: str, things: CollectionClient
) -> None:
    with greeted(server, make_key(things.account.tenant)) as client:
        refusal = client.ask("insert", "1", collection=things.name, document=_document())
        assert (refusal["type"], refusal["error"]["code"]) == ("error", "storage_full")
        assert refusal["error"]["status"] == 507
        result = client.ask("query", "2", collection=things.name)
        assert [item["id"] for item in result["items"]] == ["small"]


@pytest.mark.usefixtures("full")
def test_a_mutation_by_graphql_is_refused_with_the_same_code(
    server: str, things: CollectionClient
) -> None:
    graphql = GraphqlCaller(with_key(server, make_key(things.account.tenant)))
    insert = "insertDocument(collection: $c, document: $d) { key }"
    error = graphql.refused(
        f"mutation ($c: String!, $d: JSON!) {{ {insert} }}", c=things.name, d=_document()
    )
    assert error["extensions"]["code"] == "storage_full"
    assert error["extensions"]["status"] == 507


@pytest.mark.usefixtures("full")
def test_the_control_plane_rejects_changes_and_sessions_continue(
    server: str, things: CollectionClient
) -> None:
    slug = things.account.slug
    owner = signed_in(server, things.account.owner)
    # Small rows fit on existing pages, but not for long.
    answers = (
        owner.post(f"/api/v1/tenants/{slug}/collections", {"name": f"c{number}"})
        for number in range(2_000)
    )
    _assert_full(next(answer for answer in answers if answer.status_code != 201))
    assert owner.get(f"/api/v1/tenants/{slug}/collections").status_code == 200
    assert owner.get("/api/v1/auth/session").status_code == 200


def test_a_key_whose_use_cannot_be_recorded_is_still_valid(server: str, postgres_url: str) -> None:
    account = make_tenant()
    with _rejecting_updates(postgres_url, "tenants_apikey", account.tenant.id.hex):
        answer = with_key(server, account.admin_key).get(f"/api/v1/tenants/{account.slug}")
    assert answer.status_code == 200


@contextmanager
def _rejecting_updates(postgres_url: str, table: str, tenant: str) -> Iterator[None]:
    """Reject changes of one tenant's rows as a full disk does."""
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute(
            "CREATE FUNCTION refuse_update() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            "IF NEW.tenant_id = TG_ARGV[0]::uuid THEN "
            "RAISE EXCEPTION 'full' USING ERRCODE = '53100'; END IF; RETURN NEW; END $$"
        )
        admin.execute(
            sql.SQL(
                "CREATE TRIGGER full_disk BEFORE UPDATE ON {} FOR EACH ROW "
                "EXECUTE FUNCTION refuse_update({})"
            ).format(sql.Identifier(table), sql.Literal(tenant))
        )
        try:
            yield
        finally:
            admin.execute("DROP FUNCTION refuse_update CASCADE")
