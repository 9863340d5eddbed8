"""Which requests a tenant's members see in the request log, and what it never contains."""

from __future__ import annotations

import datetime
import secrets
import threading
from typing import Any
from urllib.parse import urlencode

import pytest
from django.db import DatabaseError, connections
from django.utils import timezone

from tenants.models import RequestBatch, RequestGap
from tenants.request_log import bounds, recorder
from tenants.request_log.recorder import RequestEntry, RequestKind, RequestLog
from tenants.roles import Role
from tenants.sweeps import request_log as sweep
from tests.caller import Caller, problem, signed_in, with_key
from tests.documents.collection import make_collection
from tests.make import TenantAccount, make_key, make_member, make_tenant


def answer(caller: Caller, account: TenantAccount, **filters: object) -> dict[str, Any]:
    recorder.flush()
    response = caller.get(f"/api/v1/tenants/{account.slug}/request-log?{urlencode(filters)}")
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body


def entries(caller: Caller, account: TenantAccount, **filters: object) -> list[dict[str, Any]]:
    result: list[dict[str, Any]] = answer(caller, account, **filters)["items"]
    return result


def entry(account: TenantAccount, **values: Any) -> RequestEntry:
    plain = RequestEntry(
        str(account.tenant.id),
        RequestKind.REQUEST,
        "GET",
        "/v1/collections/todos/query",
        200,
        0.012,
        1,
        2,
        "api_key:1",
        secrets.token_hex(16),
    )
    return plain._replace(**values)


def written(
    account: TenantAccount, *requests: RequestEntry, log: RequestLog | None = None
) -> RequestLog:
    """Write requests as a process does."""
    log = log or RequestLog(interval_s=3600)
    for request in requests:
        log.note(request)
    log.flush()
    return log


def batches(account: TenantAccount) -> list[RequestBatch]:
    rows = RequestBatch.unscoped.using("relay").filter(tenant_id=account.tenant.id)
    return list(rows.order_by("last_at"))


def gaps(account: TenantAccount) -> tuple[int, int]:
    rows = RequestGap.unscoped.using("relay").filter(tenant_id=account.tenant.id)
    return sum(gap.dropped for gap in rows), sum(gap.removed for gap in rows)


def make_older(account: TenantAccount, age: datetime.timedelta) -> None:
    """Make everything that was written appear to be older."""
    with connections["owner"].cursor() as cursor:
        cursor.execute("ALTER TABLE tenants_requestbatch NO FORCE ROW LEVEL SECURITY")
        cursor.execute(
            "UPDATE tenants_requestbatch SET first_at = first_at - %(age)s::interval, "
            "last_at = last_at - %(age)s::interval, "
            "at = ARRAY(SELECT element - %(age)s::interval FROM unnest(at) AS element) "
            "WHERE tenant_id = %(tenant)s",
            {"age": f"{age.total_seconds()} s", "tenant": account.tenant.id},
        )
        cursor.execute("ALTER TABLE tenants_requestbatch FORCE ROW LEVEL SECURITY")


def test_calls_of_both_planes_and_graphql_are_found_with_durations_and_sizes(server: str) -> None:
    notes = make_collection(server, name="notes")
    owner = signed_in(server, notes.account.owner)
    body = {"_id": "the-id", "title": "x"}
    sent = notes.caller.post(f"{notes.path}/documents", body, X_Request_Id="request-of-insert")
    assert sent.status_code == 201
    notes.caller.get(f"{notes.path}/documents/the-id")
    owner.get(f"/api/v1/tenants/{notes.account.slug}/webhooks")
    owner.get(f"/api/v1/tenants/{notes.account.slug}/members/{notes.account.owner.id}")
    notes.caller.post("/graphql", {"query": "{ __typename }"})

    (insert,) = entries(owner, notes.account, request_id="request-of-insert")
    assert (insert["kind"], insert["method"], insert["status"]) == ("request", "POST", 201)
    assert insert["route"] == f"{notes.path}/documents"
    assert insert["actor"].startswith("api_key:")
    assert insert["bytes_in"] == len('{"_id": "the-id", "title": "x"}')
    assert insert["bytes_out"] == len(sent.content)
    assert insert["duration_ms"] > 0
    assert insert["code"] is None
    routes = [entry["route"] for entry in entries(owner, notes.account)]
    assert routes == [
        "/graphql",
        f"/api/v1/tenants/{notes.account.slug}/members/{{user}}",
        f"/api/v1/tenants/{notes.account.slug}/webhooks",
        f"{notes.path}/documents/{{id}}",
        f"{notes.path}/documents",
    ]


def test_a_failed_request_and_its_error_lead_to_each_other(server: str) -> None:
    account = make_tenant()
    key = with_key(server, make_key(account.tenant, scopes=["documents:read"]))
    owner = signed_in(server, account.owner)
    refusal = problem(
        key.post("/v1/collections/todos/query", {"filter": {"$no": 1}}), 400, "unsupported_operator"
    )
    owner.post(f"/api/v1/tenants/{account.slug}/webhooks", {"name": "x", "url": 5})
    owner.headers["Rillbase-Tenant"] = account.slug
    owner.post("/graphql", {"query": "{ nothing }"})
    (request,) = entries(owner, account, request_id=refusal["request_id"])
    assert (request["status"], request["code"]) == (400, "unsupported_operator")
    from tenants import error_log

    error_log.flush()
    errors = owner.get(f"/api/v1/tenants/{account.slug}/errors?request_id={request['request_id']}")
    assert [error["code"] for error in errors.json()["items"]] == [request["code"]]
    assert [e["route"] for e in entries(owner, account, code="invalid_body")] == [
        f"/api/v1/tenants/{account.slug}/webhooks"
    ]
    (graphql,) = entries(owner, account, route="/graphql")
    assert graphql["code"] == "invalid_operation"


def test_nothing_of_a_callers_data_is_stored(server: str) -> None:
    notes = make_collection(server, name="notes")
    secret = "sesame" + secrets.token_hex(8)
    caller = notes.caller
    caller.post(
        f"{notes.path}/documents",
        {"_id": secret, "title": secret},
        X_Secret=secret,
        Idempotency_Key=secret,
    )
    caller.get(f"{notes.path}/documents/{secret}?projection={secret}", Cookie=f"a={secret}")
    caller.get(f"{notes.path}/documents?filter={secret}")
    caller.post("/graphql?" + secret, {"query": f'{{ a(b: "{secret}") }}'})
    caller.get(f"/v1/collections/rbk_dev_abcdefghijklmnop.{secret}/documents/x")
    signed_in(server, notes.account.owner).post(
        f"/api/v1/tenants/{notes.account.slug}/webhooks",
        {"name": secret, "url": f"http://{secret}"},
    )
    recorder.flush()
    assert sum(batch.entries for batch in batches(notes.account)) == 6
    key = caller.headers["Authorization"].rpartition(".")[2]
    with connections["relay"].cursor() as cursor:
        for table in ("tenants_requestbatch", "tenants_requestgap"):
            cursor.execute(f"SELECT t::text FROM {table} t")
            stored = "\n".join(row[0] for row in cursor.fetchall())
            assert secret not in stored
            assert key not in stored


def test_members_read_the_log_of_their_own_tenant_only(server: str) -> None:
    account, other = make_tenant(), make_tenant()
    written(account, entry(account, route="/mine"))
    viewer = signed_in(server, make_member(account.tenant, Role.VIEWER))
    assert [entry["route"] for entry in entries(viewer, account)] == ["/mine"]
    stranger = signed_in(server, other.owner)
    path = f"/api/v1/tenants/{account.slug}/request-log"
    problem(stranger.get(path), 404, "not_found")
    assert with_key(server, make_key(account.tenant)).get(path).status_code == 403
    assert with_key(server, account.admin_key).get(path).status_code == 200
    assert "/mine" not in {entry["route"] for entry in entries(stranger, other)}
    # Nor does a cursor of one tenant give access to the log of another.
    written(account, entry(account), entry(account))
    cursor = answer(viewer, account, limit=1)["next_cursor"]
    foreign = f"/api/v1/tenants/{other.slug}/request-log?limit=1&cursor={cursor}"
    problem(stranger.get(foreign), 400, "invalid_cursor")


def test_the_database_keeps_tenants_apart() -> None:
    from foundation.scope import scoped

    account, other = make_tenant(), make_tenant()
    written(account, entry(account))
    for tenant, expected in ((account, 1), (other, 0)):
        with scoped(tenant_id=tenant.tenant.id), connections["default"].cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM tenants_requestbatch WHERE tenant_id = %s",
                [account.tenant.id],
            )
            assert cursor.fetchone() == (expected,)


def test_filters_combine(server: str) -> None:
    account = make_tenant()
    owner = signed_in(server, account.owner)
    mine = {"actor": "api_key:2", "request_id": "the-one-request"}
    written(
        account,
        entry(account, method="POST", status=201, seconds=2.5),
        entry(account, method="POST", status=409, code="duplicate_id", **mine),
        entry(account, method="WS", kind=RequestKind.CLOSED, status=4401, route="/v1/realtime"),
    )

    def statuses(**filters: object) -> list[int]:
        return [entry["status"] for entry in entries(owner, account, **filters)]

    assert statuses(method="post") == [409, 201]
    assert statuses(status="4xx") == [409]
    assert statuses(status="4401") == [4401]
    assert statuses(status="201", method="POST") == [201]
    assert statuses(status="201", method="WS") == []
    assert statuses(actor="api_key:2") == [409]
    assert statuses(request_id="the-one-request") == [409]
    assert statuses(code="duplicate_id") == [409]
    assert statuses(min_duration_ms=2500) == [201]
    assert statuses(route="COLLECTIONS/todos") == [409, 201]
    assert statuses(until=(timezone.now() - datetime.timedelta(hours=1)).isoformat()) == []
    assert statuses(since=(timezone.now() - datetime.timedelta(hours=1)).isoformat())[0] == 4401


@pytest.mark.parametrize(
    "query",
    [
        "method=FETCH",
        "status=4x",
        "status=6xx",
        "status=99999",
        "min_duration_ms=-1",
        "min_duration_ms=nan",
        "since=yesterday",
        "until=2026-01-01T00:00:00",
        "route=" + "x" * 201,
        "limit=0",
    ],
)
def test_an_invalid_filter_is_refused(server: str, query: str) -> None:
    account = make_tenant()
    owner = signed_in(server, account.owner)
    refusal = owner.get(f"/api/v1/tenants/{account.slug}/request-log?{query}")
    problem(refusal, 400, "invalid_parameter")


def test_pages_are_in_the_order_of_time_although_batches_overlap(server: str) -> None:
    account = make_tenant()
    owner = signed_in(server, account.owner)
    logs = [RequestLog(interval_s=3600) for _ in range(3)]
    for number in range(90):
        logs[number % 3].note(entry(account, request_id=f"request-{number:03}"))
        if number % 30 == 29:
            logs[number // 30].flush()
    for log in logs:
        log.flush()
    expected = [f"request-{number:03}" for number in reversed(range(90))]

    items: list[str] = []
    page: dict[str, Any] = {"next_cursor": ""}
    while page["next_cursor"] is not None:
        filters = {"cursor": page["next_cursor"]} if page["next_cursor"] else {}
        page = answer(owner, account, limit=7, **filters)
        items += [item["request_id"] for item in page["items"]]
    assert items == expected


def test_a_search_reads_until_no_batch_remains(server: str) -> None:
    account = make_tenant()
    owner = signed_in(server, account.owner)
    log = written(account, entry(account, status=500, request_id="needle-in-the-log"))
    for _ in range(60):
        written(account, entry(account), log=log)
    (needle,) = entries(owner, account, request_id="needle-in-the-log")
    assert needle["status"] == 500
    assert entries(owner, account, request_id="nowhere") == []


def test_reading_the_log_does_not_add_to_it(server: str) -> None:
    account = make_tenant()
    owner = signed_in(server, account.owner)
    assert entries(owner, account) == []
    assert entries(owner, account) == []


def test_during_a_flood_excess_requests_are_counted_and_failures_still_recorded(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "MAX_PER_INTERVAL", 20)
    account, quiet = make_tenant(), make_tenant()
    log = RequestLog(interval_s=3600)
    for _ in range(50):
        log.note(entry(account))
    log.note(entry(account, status=500))
    log.note(entry(quiet))
    log.flush()
    owner = signed_in(server, account.owner)
    monkeypatch.undo()
    result = answer(owner, account)
    assert [item["status"] for item in result["items"]] == [500, *[200] * 18]
    assert result["missing"] == {"dropped": 32, "removed": 0, "removed_until": None}
    assert gaps(quiet) == (0, 0)
    # The next interval starts from zero.
    written(account, entry(account, request_id="later-request"), log=log)
    assert entries(owner, account)[0]["request_id"] == "later-request"


def test_memory_stays_bounded_while_the_database_is_unavailable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    account = make_tenant()
    log = RequestLog(interval_s=3600)

    def raise_unavailable(*_: object) -> None:
        raise DatabaseError("away")

    with monkeypatch.context() as broken:
        broken.setattr(bounds, "MAX_PENDING", 20)
        broken.setattr(connections["relay"], "cursor", raise_unavailable)
        for _ in range(10):
            for _ in range(10):
                log.note(entry(account))
            assert log.flush() == 0
    log.flush()
    assert sum(batch.entries for batch in batches(account)) == 18
    assert gaps(account) == (82, 0)


def test_requests_older_than_a_day_are_removed(server: str) -> None:
    account = make_tenant()
    owner = signed_in(server, account.owner)
    written(account, entry(account, request_id="the-old-request"))
    make_older(account, bounds.RETENTION + datetime.timedelta(minutes=1))
    written(account, entry(account, request_id="the-new-request"))
    assert [e["request_id"] for e in entries(owner, account)] == ["the-new-request"]
    assert len(batches(account)) == 2
    sweep.delete_requests()
    assert [batch.request_id for batch in batches(account)] == [["the-new-request"]]


def test_beyond_the_limit_the_oldest_are_removed_and_reported_as_missing(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    account, quiet = make_tenant(), make_tenant()
    owner = signed_in(server, account.owner)
    log = written(quiet, entry(quiet))
    for number in range(10):
        written(account, entry(account, request_id=f"request-{number}"), entry(account), log=log)
    monkeypatch.setattr(bounds, "MAX_ENTRIES", 12)
    sweep.delete_requests()
    result = answer(owner, account)
    assert len(result["items"]) == 10
    assert result["items"][-1]["request_id"] == "request-5"
    assert result["missing"]["removed"] == 10
    assert result["missing"]["removed_until"] is not None
    assert gaps(quiet) == (0, 0)
    sweep.delete_requests()
    assert gaps(account) == (0, 10)


def test_the_largest_logs_make_room_when_the_space_for_all_is_used(
    settings_environment: pytest.MonkeyPatch,
) -> None:
    from django.db.models import Sum

    # Others' logs would leave these too little space.
    RequestBatch.unscoped.using("relay").all().delete()
    loud, quiet = make_tenant(), make_tenant()
    log = RequestLog(interval_s=3600)
    for _ in range(6):
        for _ in range(1000):
            log.note(entry(loud, actor="a" * 200))
        log.flush()
    written(quiet, entry(quiet), log=log)
    settings_environment.setenv("RILLBASE_REQUEST_LOG_MIB", "1")
    sweep.delete_requests()
    total = RequestBatch.unscoped.using("relay").aggregate(Sum("size_bytes"))["size_bytes__sum"]
    assert 0 < total <= 1024 * 1024
    assert 0 < sum(batch.entries for batch in batches(loud)) < 6000
    assert len(batches(quiet)) == 1


@pytest.mark.parametrize(
    ("sizes", "room", "share"),
    [([], 10, 10), ([3, 4], 10, 4), ([1, 9, 9], 11, 5), ([8, 8], 8, 4), ([1], 0, 0)],
)
def test_space_is_shared_fairly(sizes: list[int], room: int, share: int) -> None:
    assert bounds.fair_share(sizes, room) >= share
    assert sum(min(size, bounds.fair_share(sizes, room)) for size in sizes) <= room


def test_nothing_is_written_if_the_table_outgrows_its_bound_because_no_sweep_runs(
    settings_environment: pytest.MonkeyPatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = make_tenant()
    monkeypatch.setattr(bounds, "max_bytes", lambda: 1)
    written(account, entry(account), entry(account))
    assert batches(account) == []
    assert gaps(account) == (2, 0)


def test_requests_are_not_recorded_if_recording_is_off(
    server: str, settings_environment: pytest.MonkeyPatch
) -> None:
    account = make_tenant()
    settings_environment.setenv("RILLBASE_REQUEST_LOG_MIB", "0")
    key = with_key(server, account.admin_key)
    key.get("/v1/collections/todos/documents")
    result = answer(key, account)
    assert result["items"] == []
    assert result["is_recorded"] is False
    assert batches(account) == []


def test_texts_of_any_kind_can_be_stored(server: str) -> None:
    account = make_tenant()
    hostile = '{"a\\",NULL}\0\ud800\n' + "é" * 300
    written(
        account, entry(account, actor=hostile, route="/x"), entry(account, actor="", route="/y")
    )
    second, first = entries(signed_in(server, account.owner), account)
    assert first["actor"] == '{"a\\",NULL}\ufffd?\n' + "é" * 186
    assert second["actor"] == ""


def test_a_callers_text_takes_little_memory() -> None:
    name = recorder.route_name("/v1/collections/{collection}", {"collection": "x" * 100_000})
    assert len(name) < recorder.MAX_TEXT_CHARS
    assert (
        recorder.route_name("/a/<uuid:id>/<str:tenant>", {"tenant": "t", "id": "1"}) == "/a/{id}/t"
    )


def test_several_processes_may_write_at_the_same_time() -> None:
    account = make_tenant()
    begin = threading.Barrier(4)

    def process() -> None:
        log = RequestLog(interval_s=3600)
        begin.wait()
        for _ in range(5):
            for _ in range(20):
                log.note(entry(account))
            log._dropped[str(account.tenant.id)] += 1
            log.flush()

    threads = [threading.Thread(target=process) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(batch.entries for batch in batches(account)) == 400
    assert gaps(account)[0] == 20
