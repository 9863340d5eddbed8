"""Every address of the API, called with another tenant's credentials.

The URLs come from the URL configuration itself, so new ones are included automatically.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import requests

from aggregates.urls import control_plane as aggregates_control_plane
from analytics.urls import control_plane as analytics_control_plane
from documents.urls import control_plane as documents_control_plane
from realtime.clusters.views import urlpatterns as cluster
from rillbase_server.overview import urlpatterns as overview
from storage_engine.urls import control_plane as topics_control_plane
from tenants.api import base
from tenants.api.base import TenantView
from tenants.api.urls import control_plane
from tests.caller import Caller, signed_in, with_key
from tests.contract.victim import victim
from tests.make import TenantAccount, make_personal_token, make_tenant

METHODS = ("GET", "POST", "PATCH", "PUT", "DELETE")


def tenant_routes() -> Iterator[str]:
    for pattern in [
        *control_plane,
        *documents_control_plane,
        *topics_control_plane,
        *aggregates_control_plane,
        *analytics_control_plane,
        *cluster,
        *overview,
    ]:
        route = str(pattern.pattern)
        if "<str:tenant>" in route:
            view = getattr(pattern.callback, "view_class", None)
            assert view is not None, route
            assert issubclass(view, TenantView), route
            yield route


def address(route: str, slug: str, ids: dict[str, str]) -> str:
    def fill(match: re.Match[str]) -> str:
        name = match[1]
        if name == "tenant":
            return slug
        assert name in ids, f"teach this test how to make a {name!r}"
        return ids[name]

    return "/api/v1/" + re.sub(r"<\w+:(\w+)>", fill, route)


def strangers(base: str) -> list[tuple[str, Caller, TenantAccount]]:
    other = make_tenant(plan="dedicated")
    return [
        ("admin key", with_key(base, other.admin_key), other),
        ("session", signed_in(base, other.owner), other),
    ]


def check_refused(answer: requests.Response, what: str) -> None:
    assert answer.status_code in (401, 403, 404, 405), f"{what}: {answer.status_code} {answer.text}"
    assert victim().mark not in answer.text, what


@pytest.mark.parametrize("route", list(tenant_routes()))
def test_a_stranger_gets_nothing_from_another_tenants_address(server: str, route: str) -> None:
    path = address(route, victim().account.slug, victim().ids)
    for name, caller, _ in strangers(server):
        for method in METHODS:
            body: object = None if method in ("GET", "DELETE") else {}
            check_refused(caller.call(method, path, body), f"{name}: {method} {path}")


@pytest.mark.parametrize("route", [r for r in tenant_routes() if r.count("<") > 1])
def test_another_tenants_ids_do_not_exist_below_ones_own(server: str, route: str) -> None:
    for name, caller, own in strangers(server):
        path = address(route, own.slug, victim().ids)
        for method in ("GET", "DELETE"):
            check_refused(caller.call(method, path), f"{name}: {method} {path}")


def test_a_personal_token_bound_to_one_tenant_opens_no_other(server: str) -> None:
    first = make_tenant()
    second = make_tenant(owner=first.owner)
    text = make_personal_token(first.owner, tenant=first.tenant)
    caller = with_key(server, text)
    assert caller.get(f"/api/v1/tenants/{first.slug}").status_code == 200
    assert caller.get(f"/api/v1/tenants/{second.slug}").status_code == 404
    assert caller.get("/v1/whoami", Rillbase_Tenant=second.slug).status_code == 404


def test_with_the_first_wall_torn_down_the_second_still_hides_everything(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The manager in code stops filtering; lists still show only the caller's own rows."""
    from django.db import models

    from foundation.scope import ScopedManager

    hidden = victim()
    monkeypatch.setattr(ScopedManager, "get_queryset", models.Manager.get_queryset)
    # Reads by id name the tenant in a statement that is compiled once: that part of the wall too.
    monkeypatch.setattr(base, "read_one", lambda model, pk: model.objects.filter(pk=pk).first())
    _, caller, own = strangers(server)[0]
    for part in (
        "api-keys",
        "members",
        "issuers",
        "webhooks",
        "audit-log",
        "errors",
        "collections",
        "aggregates",
        "cluster",
    ):
        answer = caller.get(f"/api/v1/tenants/{own.slug}/{part}")
        assert answer.status_code == 200, answer.text
        assert hidden.mark not in answer.text
        assert hidden.account.owner.email not in answer.text
    stolen = caller.get(f"/api/v1/tenants/{own.slug}/api-keys/{hidden.ids['key']}")
    assert stolen.status_code == 404
