"""The staff admin, through its real pages."""

from __future__ import annotations

import re

import pytest
import requests

from documents.models import Collection, Index
from foundation.models import DeadLetter
from foundation.scope import scoped
from rillbase_server.staff.site import site
from tenants.models import AuditEntry, Tenant
from tests.browser import from_own_address
from tests.caller import signed_in
from tests.make import PASSWORD, TenantAccount, make_tenant, make_user

PAGES = [f"{m._meta.app_label}/{m._meta.model_name}/" for m in site._registry]


def sign_in(server: str, email: str, password: str = PASSWORD) -> requests.Session:
    browser = requests.Session()
    browser.mount("http://", from_own_address())
    page = browser.get(f"{server}/staff/login/")
    assert page.status_code == 200
    browser.post(
        f"{server}/staff/login/?next=/staff/",
        data={"username": email, "password": password, "csrfmiddlewaretoken": token(page.text)},
        headers={"Referer": f"{server}/staff/login/"},
    )
    return browser


def token(page: str) -> str:
    match = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page)
    assert match
    return match[1]


@pytest.fixture(scope="module")
def staff(server: str) -> requests.Session:
    return sign_in(server, make_user(is_staff=True).email)


def test_only_active_staff_get_in(server: str) -> None:
    outsiders = [
        sign_in(server, make_user().email),
        sign_in(server, make_user(is_staff=True, is_active=False).email),
        sign_in(server, make_user(is_staff=True).email, "wrong password"),
    ]
    for browser in outsiders:
        answer = browser.get(f"{server}/staff/", allow_redirects=False)
        assert (answer.status_code, answer.headers["Location"]) == (
            302,
            "/staff/login/?next=/staff/",
        )


@pytest.mark.parametrize("page", PAGES)
def test_every_list_opens_and_can_be_searched(
    server: str, staff: requests.Session, page: str
) -> None:
    make_tenant()
    assert staff.get(f"{server}/staff/{page}").status_code == 200
    assert staff.get(f"{server}/staff/{page}?q=nothing").status_code == 200


def test_staff_suspend_a_tenant_and_the_tenant_sees_it_in_its_audit_log(
    server: str, staff: requests.Session
) -> None:
    account = make_tenant()
    url = f"{server}/staff/tenants/tenant/{account.tenant.id}/change/"
    page = staff.get(url)
    assert page.status_code == 200
    form = {"plan": "dedicated", "state": "suspended", "csrfmiddlewaretoken": token(page.text)}
    saved = staff.post(url, data=form, headers={"Referer": url}, allow_redirects=False)
    assert saved.status_code == 302, saved.text[:2000]
    row = Tenant.objects.using("staff").get(pk=account.tenant.id)
    assert (row.state, row.plan_id) == ("suspended", "dedicated")
    with scoped(tenant_id=account.tenant.id):
        entry = AuditEntry.objects.get()
    assert entry.action == "tenant.changed_by_staff"
    assert entry.after == {"plan": "dedicated", "state": "suspended"}


def set_state(server: str, staff: requests.Session, account: TenantAccount, state: str) -> Tenant:
    """Send the tenant's form with a state, whatever the page offers; return the row."""
    url = f"{server}/staff/tenants/tenant/{account.tenant.id}/change/"
    csrf = token(staff.get(url).text)
    form = {"plan": "standard", "state": state, "csrfmiddlewaretoken": csrf}
    staff.post(url, data=form, headers={"Referer": url}, allow_redirects=False)
    return Tenant.objects.using("staff").get(pk=account.tenant.id)


def test_staff_cannot_delete_a_tenant_without_a_purge_date(
    server: str, staff: requests.Session
) -> None:
    account = make_tenant()
    row = set_state(server, staff, account, "deleting")
    assert (row.state, row.purge_at) == ("active", None)


def test_staff_cannot_restore_a_tenant_that_its_owner_has_deleted(
    server: str, staff: requests.Session
) -> None:
    account = make_tenant()
    assert signed_in(server, account.owner).delete(f"/api/v1/tenants/{account.slug}").ok
    row = set_state(server, staff, account, "active")
    assert row.state == "deleting"
    assert row.purge_at is not None


def test_a_form_without_its_csrf_token_changes_nothing(
    server: str, staff: requests.Session
) -> None:
    account = make_tenant()
    url = f"{server}/staff/tenants/tenant/{account.tenant.id}/change/"
    refusal = staff.post(url, data={"plan": "free", "state": "suspended"}, headers={"Referer": url})
    assert refusal.status_code == 403
    assert Tenant.objects.using("staff").get(pk=account.tenant.id).state == "active"


def test_secrets_are_on_no_page(server: str, staff: requests.Session) -> None:
    user = make_user()
    page = staff.get(f"{server}/staff/tenants/user/{user.id}/change/")
    assert page.status_code == 200
    assert "argon2" not in page.text


def test_a_collection_is_shown_and_cannot_be_changed(server: str, staff: requests.Session) -> None:
    account = make_tenant()
    with scoped(tenant_id=account.tenant.id):
        collection = Collection.objects.create(name="shown-to-staff")
        index = Index.objects.create(
            collection=collection, name="by-x", fields=[["x", 1]], error="document secret-id"
        )
    url = f"{server}/staff/documents/collection/{collection.pk}/change/"
    page = staff.get(url)
    assert page.status_code == 200
    assert "shown-to-staff" in page.text
    form = {"name": "renamed", "csrfmiddlewaretoken": token(page.text)}
    assert staff.post(url, data=form, headers={"Referer": url}).status_code == 403
    page = staff.get(f"{server}/staff/documents/index/{index.pk}/change/")
    assert "by-x" in page.text
    assert "secret-id" not in page.text


def test_a_dead_letter_can_be_run_again(server: str, staff: requests.Session) -> None:
    letter = DeadLetter(task_id=f"t-{make_user().id}", name="no.such.task", error="boom")
    letter.save(using="relay")
    url = f"{server}/staff/foundation/deadletter/"
    form = {
        "action": "run_again",
        "_selected_action": str(letter.pk),
        "csrfmiddlewaretoken": token(staff.get(url).text),
    }
    assert staff.post(url, data=form, headers={"Referer": url}).status_code == 200
    assert DeadLetter.objects.using("relay").get(pk=letter.pk).requeued_at is not None
    answer = staff.post(url, data=form, headers={"Referer": url})
    assert (answer.status_code, "0 of 1 tasks" in answer.text) == (200, True)


def test_guessing_a_staff_password_is_rate_limited(server: str) -> None:
    """Even the right one is refused then, so that nobody learns which it is."""
    staff = make_user(is_staff=True)
    for _ in range(15):
        sign_in(server, staff.email, "wrong password")
    browser = sign_in(server, staff.email)
    assert browser.get(f"{server}/staff/", allow_redirects=False).status_code == 302
