"""Rotating keys neither circumvents the quota nor uses it up."""

from __future__ import annotations

import datetime

from django.utils import timezone

from tests.caller import problem, with_key
from tests.make import make_key, make_tenant

SCOPES = ["documents:read"]


def test_rotations_do_not_use_up_the_quota_of_keys(server: str) -> None:
    account = make_tenant(plan="free")
    caller, path = with_key(server, account.admin_key), f"/api/v1/tenants/{account.slug}/api-keys"
    key = caller.post(path, {"name": "k", "scopes": SCOPES}).json()
    for _ in range(12):
        answer = caller.post(f"{path}/{key['id']}/rotate", {"overlap_s": 0})
        assert answer.status_code == 201, answer.text
        key = answer.json()
    assert caller.post(path, {"name": "another", "scopes": SCOPES}).status_code == 201


def test_rotating_again_and_again_makes_at_most_as_many_overlapping_keys_as_the_quota_allows(
    server: str,
) -> None:
    account = make_tenant(plan="free")
    caller, path = with_key(server, account.admin_key), f"/api/v1/tenants/{account.slug}/api-keys"
    key = caller.post(path, {"name": "k", "scopes": SCOPES}).json()
    answer, working = None, 2
    while working <= 25:
        answer = caller.post(f"{path}/{key['id']}/rotate", {"overlap_s": 3600})
        if answer.status_code != 201:
            break
        key, working = answer.json(), working + 1
    assert answer is not None
    problem(answer, 403, "quota_exceeded")
    assert working == 2 + 10


def test_a_rotated_key_cannot_be_made_to_last_longer(server: str) -> None:
    account = make_tenant(plan="free")
    caller, path = with_key(server, account.admin_key), f"/api/v1/tenants/{account.slug}/api-keys"
    key = caller.post(path, {"name": "k", "scopes": SCOPES}).json()
    caller.post(f"{path}/{key['id']}/rotate", {"overlap_s": 3600})
    problem(caller.patch(f"{path}/{key['id']}", {"expires_at": None}), 409, "conflict")


def test_a_key_that_has_expired_is_not_rotated(server: str) -> None:
    account = make_tenant(plan="free")
    caller = with_key(server, account.admin_key)
    make_key(account.tenant, expires_at=timezone.now() - datetime.timedelta(days=1))
    path = f"/api/v1/tenants/{account.slug}/api-keys"
    (key,) = (k for k in caller.get(path).json()["items"] if k["state"] == "expired")
    problem(caller.post(f"{path}/{key['id']}/rotate", {}), 409, "conflict")
