"""Conventions of all calls: errors, bodies, preconditions, idempotency, lists, headers."""

from __future__ import annotations

import threading

import pytest

from foundation.scope import scoped
from tenants.models import ApiKey, Quota
from tests.caller import Caller, anonymous, problem, signed_in, with_key
from tests.make import TenantAccount, make_key, make_tenant, make_user

SCOPES = ["documents:read"]


@pytest.fixture
def account() -> TenantAccount:
    return make_tenant(plan="dedicated")


@pytest.fixture
def caller(server: str, account: TenantAccount) -> Caller:
    return with_key(server, account.admin_key)


def keys_path(account: TenantAccount) -> str:
    return f"/api/v1/tenants/{account.slug}/api-keys"


def keys_count(account: TenantAccount) -> int:
    with scoped(tenant_id=account.tenant.id):
        return ApiKey.objects.count()


BAD_BODIES = {
    "not json": (b"{", "malformed_json"),
    "trailing garbage": (b"{} x", "malformed_json"),
    "bad utf-8": (b'{"name":"\xff","scopes":["documents:read"]}', "malformed_json"),
    "a byte order mark": (
        b'\xef\xbb\xbf{"name":"k","scopes":["documents:read"]}',
        "malformed_json",
    ),
    "a NUL byte": (b'{"name":"a\\u0000b","scopes":["documents:read"]}', "malformed_json"),
    "a lone surrogate": (b'{"name":"\\ud800","scopes":["documents:read"]}', "malformed_json"),
    "a duplicate key": (b'{"name":"a","name":"b","scopes":["documents:read"]}', "malformed_json"),
    "NaN": (b'{"name":NaN,"scopes":["documents:read"]}', "malformed_json"),
    "too deep": (b"[" * 5000 + b"]" * 5000, "malformed_json"),
    "a list": (b"[]", "invalid_body"),
    "a string": (b'"x"', "invalid_body"),
    "null": (b"null", "invalid_body"),
    "nothing": (b"", "invalid_body"),
    "wrong types": (b'{"name":{"a":1},"scopes":"documents:read"}', "invalid_body"),
    "an unknown field": (b'{"name":"k","scopes":["documents:read"],"x":1}', "invalid_body"),
    "a control character": (b'{"name":"a\\u0007b","scopes":["documents:read"]}', "invalid_body"),
    "too long a name": (
        b'{"name":"' + b"x" * 101 + b'","scopes":["documents:read"]}',
        "invalid_body",
    ),
}


@pytest.mark.parametrize("name", BAD_BODIES)
def test_a_bad_body_is_named_and_changes_nothing(
    caller: Caller, account: TenantAccount, name: str
) -> None:
    raw, code = BAD_BODIES[name]
    before = keys_count(account)
    answer = caller.call("POST", keys_path(account), raw=raw)
    body = problem(answer, 400, code)
    assert body["request_id"] == answer.headers["X-Request-Id"]
    assert body.get("detail") or body.get("errors")
    assert keys_count(account) == before


def test_the_error_points_to_an_unknown_field(caller: Caller, account: TenantAccount) -> None:
    answer = caller.post(keys_path(account), {"name": "k", "scopes": SCOPES, "sc/o~pe": 1})
    errors = problem(answer, 400, "invalid_body")["errors"]
    assert [(e["pointer"], e["code"]) for e in errors] == [("/sc~1o~0pe", "unknown_field")]


def test_a_body_of_another_media_type_is_refused(caller: Caller, account: TenantAccount) -> None:
    answer = caller.call("POST", keys_path(account), raw=b"a=b", Content_Type="text/plain")
    problem(answer, 415, "unsupported_media_type")


def test_too_large_a_body_is_refused(caller: Caller, account: TenantAccount) -> None:
    raw = b'{"name":"' + b"x" * 300_000 + b'"}'
    problem(caller.call("POST", keys_path(account), raw=raw), 413, "body_too_large")


def test_methods_and_addresses_that_do_not_exist(caller: Caller, account: TenantAccount) -> None:
    problem(caller.call("PUT", keys_path(account), {}), 405, "method_not_allowed")
    problem(caller.get("/api/v1/nothing-here"), 404, "not_found")
    problem(caller.get("/v1/nothing-here"), 404, "not_found")
    problem(caller.get(f"{keys_path(account)}/not-a-uuid"), 404, "not_found")
    problem(caller.get("/api/v1/tenants/a%00b"), 404, "not_found")


def test_without_credentials_the_answer_says_how_to_authenticate(server: str) -> None:
    answer = anonymous(server).get("/v1/whoami")
    problem(answer, 401, "unauthenticated")
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    malformed = Caller(server, {"Authorization": "Basic abc"}).get("/v1/whoami")
    problem(malformed, 401, "invalid_credentials")


def test_a_cookie_needs_its_csrf_token_and_origin_for_changes(
    server: str, account: TenantAccount
) -> None:
    caller = signed_in(server, account.owner)
    bare = Caller(server, {"Cookie": caller.headers["Cookie"]})
    path = f"/api/v1/tenants/{account.slug}"
    assert bare.get(path).status_code == 200
    problem(bare.patch(path, {"name": "x"}), 403, "csrf_failed")
    problem(caller.patch(path, {"name": "x"}, Origin="https://evil.example"), 403, "csrf_failed")
    other = signed_in(server, make_user()).headers["X-CSRF-Token"]
    problem(bare.patch(path, {"name": "x"}, X_CSRF_Token=other), 403, "csrf_failed")


def test_answers_carry_the_headers_of_the_contract(caller: Caller) -> None:
    answer = caller.get("/v1/whoami", X_Request_Id="my-request-1")
    assert answer.headers["X-Request-Id"] == "my-request-1"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Content-Security-Policy"] == "sandbox"
    assert answer.headers["Cache-Control"] == "no-store"
    assert 'tenant";r=' in answer.headers["RateLimit"]
    assert 'key";q=' in answer.headers["RateLimit-Policy"]
    forged = caller.get("/v1/whoami", X_Request_Id="bad id;")
    assert forged.headers["X-Request-Id"] != "bad id;"


def test_the_same_idempotency_key_with_another_body_is_refused(
    caller: Caller, account: TenantAccount
) -> None:
    caller.post(keys_path(account), {"name": "a", "scopes": SCOPES}, Idempotency_Key="k1")
    before = keys_count(account)
    answer = caller.post(keys_path(account), {"name": "b", "scopes": SCOPES}, Idempotency_Key="k1")
    problem(answer, 422, "idempotency_mismatch")
    assert keys_count(account) == before


def test_an_idempotency_key_is_private_to_its_principal(
    server: str, account: TenantAccount
) -> None:
    body = {"name": "a", "scopes": SCOPES}
    other = make_key(account.tenant, scopes=["admin"])
    first = with_key(server, account.admin_key).post(
        keys_path(account), body, Idempotency_Key="same"
    )
    second = with_key(server, other).post(keys_path(account), body, Idempotency_Key="same")
    assert second.status_code == 201
    assert first.json()["id"] != second.json()["id"]


def test_a_failed_call_leaves_its_idempotency_key_free(
    caller: Caller, account: TenantAccount
) -> None:
    bad, good = {"name": "a"}, {"name": "a", "scopes": SCOPES}
    problem(caller.post(keys_path(account), bad, Idempotency_Key="retry"), 400, "invalid_body")
    assert caller.post(keys_path(account), good, Idempotency_Key="retry").status_code == 201


def test_many_callers_with_one_idempotency_key_make_one_thing(
    caller: Caller, account: TenantAccount
) -> None:
    before, statuses = keys_count(account), []
    body = {"name": "a", "scopes": SCOPES}

    def call() -> None:
        statuses.append(caller.post(keys_path(account), body, Idempotency_Key="race").status_code)

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(statuses) <= {201, 409}
    assert keys_count(account) == before + 1


def test_an_idempotency_key_must_be_printable(caller: Caller, account: TenantAccount) -> None:
    answer = caller.post(
        keys_path(account), {"name": "a", "scopes": SCOPES}, Idempotency_Key="x" * 201
    )
    problem(answer, 400, "invalid_parameter")


def test_a_list_is_paged_without_gaps_or_repeats(caller: Caller, account: TenantAccount) -> None:
    expected = {
        caller.post(keys_path(account), {"name": "k", "scopes": SCOPES}).json()["id"]
        for _ in range(7)
    }
    seen: list[str] = []
    cursor = ""
    while True:
        suffix = f"&cursor={cursor}" if cursor else ""
        page = caller.get(f"{keys_path(account)}?limit=3{suffix}").json()
        seen += [item["id"] for item in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert len(seen) == len(set(seen)) == 8
    assert expected <= set(seen)


def test_cursors_of_other_lists_and_forged_ones_are_refused(
    server: str, caller: Caller, account: TenantAccount
) -> None:
    for _ in range(2):
        caller.post(keys_path(account), {"name": "k", "scopes": SCOPES})
    cursor = caller.get(f"{keys_path(account)}?limit=1").json()["next_cursor"]
    log = f"/api/v1/tenants/{account.slug}/audit-log"
    other = make_tenant()
    other_path = keys_path(other)
    problem(caller.get(f"{log}?cursor={cursor}"), 400, "invalid_cursor")
    stranger = with_key(server, other.admin_key)
    problem(stranger.get(f"{other_path}?cursor={cursor}"), 400, "invalid_cursor")
    for forged in ("x", "AAAA", cursor[:-2], cursor + "AA", "x" * 2000, "é"):
        problem(caller.get(f"{keys_path(account)}?cursor={forged}"), 400, "invalid_cursor")
    changed_filter = caller.get(f"{log}?limit=1&action=api_key.created").json()["next_cursor"]
    problem(caller.get(f"{log}?cursor={changed_filter}"), 400, "invalid_cursor")


@pytest.mark.parametrize("limit", ["0", "-1", "201", "x", "1e3", "٣", "9" * 40])
def test_a_bad_page_size_is_refused(caller: Caller, account: TenantAccount, limit: str) -> None:
    problem(caller.get(f"{keys_path(account)}?limit={limit}"), 400, "invalid_parameter")


def test_a_tenant_beyond_its_rate_gets_retry_after(server: str) -> None:
    account = make_tenant()
    few = {"requests_per_s": 1, "requests_burst": 3}
    Quota(tenant=account.tenant, limits=few).save(using="staff")
    caller = with_key(server, account.admin_key)
    refusals = [a for a in (caller.get("/v1/whoami") for _ in range(10)) if a.status_code == 429]
    assert refusals, "ten calls within a second or two exceed a burst of three"
    problem(refusals[0], 429, "rate_limited")
    assert int(refusals[0].headers["Retry-After"]) >= 1


@pytest.mark.parametrize("text", ["a\x00b", "%00", "' OR 1=1 --", "\u202e", "a" * 5000])
def test_hostile_text_in_filters_is_only_text(
    caller: Caller, account: TenantAccount, text: str
) -> None:
    path = f"/api/v1/tenants/{account.slug}/audit-log?action={text}"
    answer = caller.get(path)
    assert answer.status_code in (200, 400, 414, 431), answer.text
    if answer.status_code == 200:
        assert answer.json()["items"] == []
