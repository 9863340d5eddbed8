"""How a connection reacts to changes of its credentials."""

from __future__ import annotations

import time

import jwt
from django.utils import timezone

from foundation.scope import scoped
from tenants.models import ApiKey
from tests.caller import with_key
from tests.documents.collection import make_collection
from tests.make import TenantAccount, make_key, make_tenant
from tests.realtime.client import greeted, opened
from tests.waiting import TIMEOUT_S

ISSUER, AUDIENCE = "https://login.example.com/", "todo-app"
SECRET = "a shared secret of at least thirty-two bytes"


def register_issuer(server: str, account: TenantAccount) -> None:
    body = {
        "name": "login",
        "issuer": ISSUER,
        "audience": AUDIENCE,
        "algorithms": ["HS256"],
        "secret": SECRET,
    }
    answer = with_key(server, account.admin_key).post(
        f"/api/v1/tenants/{account.slug}/issuers", body
    )
    assert answer.status_code == 201, answer.text


def token_of(sub: str, lifetime_s: float = 60) -> str:
    claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": sub, "exp": int(time.time() + lifetime_s)}
    return jwt.encode(claims, SECRET, "HS256")


def revoke(account: TenantAccount, text: str) -> None:
    with scoped(tenant_id=account.tenant.id):
        ApiKey.objects.filter(key_id=text.split("_")[2]).update(revoked_at=timezone.now())


def test_a_revoked_key_ends_the_connection(server: str) -> None:
    account = make_tenant()
    key = make_key(account.tenant)
    with greeted(server, key) as client:
        revoke(account, key)
        assert client.closed()[0] == 4401


def test_changed_scopes_apply_from_then_on(server: str) -> None:
    todos = make_collection(server)
    key = make_key(todos.account.tenant)
    with greeted(server, key) as client:
        assert client.ask("insert", "1", collection=todos.name, document={})["type"] == "ack"
        with scoped(tenant_id=todos.account.tenant.id):
            ApiKey.objects.filter(key_id=key.split("_")[2]).update(scopes=["documents:read"])
        deadline = time.monotonic() + TIMEOUT_S
        while client.ask("insert", "2", collection=todos.name, document={})["type"] == "ack":
            assert time.monotonic() < deadline


def test_an_expired_token_ends_what_it_authorised_until_it_is_replaced(server: str) -> None:
    account = make_tenant()
    register_issuer(server, account)
    todos = make_collection(server, account=account, rules={"read": True})
    key = make_key(account.tenant, kind=ApiKey.Kind.PUBLISHABLE, scopes=["documents:read"])
    with opened(server) as client:
        client.send(type="hello", key=key, token=token_of("ada", lifetime_s=5))
        assert client.next()["type"] == "welcome"
        deadline = time.monotonic() + TIMEOUT_S
        while (answer := client.ask("query", "q", collection=todos.name))["type"] == "ack":
            assert time.monotonic() < deadline
        assert answer["error"]["code"] == "token_expired"
        assert client.ask("auth", "a", key=key, token=token_of("ada"))["type"] == "ack"
        assert client.ask("query", "r", collection=todos.name)["type"] == "ack"


def test_a_connection_stays_with_its_tenant(server: str) -> None:
    with greeted(server, make_key(make_tenant().tenant)) as client:
        refusal = client.ask("auth", "a", token=make_key(make_tenant().tenant))
        assert refusal["error"]["code"] == "forbidden"
        assert client.ask("ping", "p")["type"] == "pong"
