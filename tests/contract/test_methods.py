"""HEAD and OPTIONS show no more than GET would."""

from __future__ import annotations

import pytest

from tenants.models import ApiKey
from tenants.roles import Role
from tests.caller import Caller, problem, signed_in, with_key
from tests.make import make_key, make_member, make_tenant

FOR_ADMINS = ("audit-log", "invitations", "api-keys")


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS"])
@pytest.mark.parametrize("what", FOR_ADMINS)
def test_a_viewer_is_refused_whatever_the_method(server: str, what: str, method: str) -> None:
    account = make_tenant()
    viewer = signed_in(server, make_member(account.tenant, Role.VIEWER))
    path = f"/api/v1/tenants/{account.slug}/{what}"
    assert viewer.get(path).status_code == 403
    assert viewer.call(method, path).status_code == 403


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS"])
def test_keys_of_the_data_plane_open_no_method_of_the_control_plane(
    server: str, method: str
) -> None:
    account = make_tenant()
    publishable = make_key(account.tenant, kind=ApiKey.Kind.PUBLISHABLE, scopes=["documents:read"])
    callers = [
        with_key(server, make_key(account.tenant, scopes=["documents:read"])),
        Caller(server, {"Rillbase-Key": publishable}),
    ]
    for caller in callers:
        answer = caller.call(method, f"/api/v1/tenants/{account.slug}/members")
        assert answer.status_code == 403, method


def test_a_caller_that_may_get_may_send_head(server: str) -> None:
    account = make_tenant()
    owner, path = signed_in(server, account.owner), f"/api/v1/tenants/{account.slug}/audit-log"
    head = owner.call("HEAD", path)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["Content-Length"] == str(len(owner.get(path).content))


@pytest.mark.parametrize("limit", ["0000000019", "00000000500", "000000001" + "0" * 30])
def test_leading_zeros_do_not_get_by_the_limit_of_a_page(server: str, limit: str) -> None:
    account = make_tenant()
    owner = signed_in(server, account.owner)
    answer = owner.get(f"/api/v1/tenants/{account.slug}/audit-log?limit={limit}")
    problem(answer, 400, "invalid_parameter")


def test_a_foreign_host_with_its_own_origin_is_rejected_without_an_error(server: str) -> None:
    login = {"email": "ada@example.test", "password": "correct horse battery"}
    answer = Caller(server).post(
        "/api/v1/auth/login", login, Host="evil.test", Origin="http://evil.test"
    )
    problem(answer, 400, "unknown_host")
