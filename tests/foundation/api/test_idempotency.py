"""What idempotency records keep apart, and what they keep secret."""

from __future__ import annotations

import hashlib

from django.db import connections
from django.http import HttpRequest
from django.test import RequestFactory
from rest_framework.response import Response

from foundation.api import idempotency
from foundation.models import IdempotencyRecord
from foundation.scope import scoped
from tests.browser import browser_of
from tests.make import TenantAccount, make_tenant, make_user, unique


def _call(
    rf: RequestFactory, account: TenantAccount, actor: str, key: str, answer: str
) -> Response:
    """Make the same call of the data plane, whose paths do not name the tenant."""
    request: HttpRequest = rf.post(
        "/v1/things", data=b"{}", content_type="application/json", headers={"Idempotency-Key": key}
    )
    caller = idempotency.IdempotencyScope(actor, account.tenant.id, None, "default")
    with scoped(tenant_id=account.tenant.id):
        return idempotency.once(request, caller, (), lambda: Response({"answer": answer}))


def test_one_user_may_use_a_key_in_two_tenants(server: str, rf: RequestFactory) -> None:
    actor, key = f"user:{make_user().id}", unique("key")
    here, there = make_tenant(), make_tenant()
    assert _call(rf, here, actor, key, "here").data == {"answer": "here"}
    assert _call(rf, there, actor, key, "there").data == {"answer": "there"}
    assert _call(rf, here, actor, key, "again").data == {"answer": "here"}
    connections.close_all()


def test_a_record_does_not_help_to_guess_a_password_of_the_call(server: str) -> None:
    """A plain hash of the body would undo what hashing passwords slowly is for."""
    user, key = make_user(), unique("key")
    browser = browser_of(server, user.email)
    body = {"email": user.email, "password": "correct horse battery"}
    assert browser.post("auth/login", body, Idempotency_Key=key).status_code == 200
    # `requests` writes JSON like this.
    raw = f'{{"email": "{user.email}", "password": "correct horse battery"}}'.encode()
    guess = hashlib.sha256()
    for part in (b"", raw):
        guess.update(len(part).to_bytes(8, "big") + part)
    kept = IdempotencyRecord.objects.using("relay").order_by("-created_at")[:5]
    assert guess.digest() not in [bytes(record.request_hash) for record in kept]
