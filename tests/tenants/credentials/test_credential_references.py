"""Credentials of open connections are looked at again, without being kept."""

from __future__ import annotations

import datetime
import time

import pytest
from django.utils import timezone

from data_plane.http import CallHead
from foundation.errors import (
    AddressNotAllowed,
    CredentialsExpired,
    InvalidCredentials,
    NotFound,
    TenantSuspended,
)
from foundation.request_context import client_address
from foundation.scope import scoped
from tenants.credentials.authenticate import authenticate_data_plane
from tenants.credentials.cache import at_most
from tenants.credentials.credential_reference import (
    CredentialReference,
    read_together,
    reference_of,
    resolve_reference,
)
from tenants.models import ApiKey, Membership, Tenant
from tenants.roles import Role
from tests.asgi_driver import http_scope
from tests.make import make_key, make_member, make_session, make_tenant


def head(**headers: str) -> CallHead:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return CallHead(http_scope("GET", "/v1/realtime", named))


def accepted(found: CallHead) -> CredentialReference:
    principal, _ = authenticate_data_plane(found)
    return reference_of(principal, found)


def change_key(tenant: Tenant, text: str, **changes: object) -> None:
    with scoped(tenant_id=tenant.id):
        ApiKey.objects.filter(key_id=text.split("_")[2]).update(**changes)


def test_a_key_that_still_holds_stands_for_the_same_caller() -> None:
    made = make_tenant()
    found = head(Authorization=f"Bearer {make_key(made.tenant, scopes=['documents:read'])}")
    before, _ = authenticate_data_plane(found)
    principal, tenant = resolve_reference(reference_of(before, found))
    assert principal == before
    assert tenant.id == made.tenant.id


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"revoked_at": timezone.now()}, InvalidCredentials),
        ({"expires_at": timezone.now() - datetime.timedelta(seconds=1)}, CredentialsExpired),
        ({"allowed_networks": ["198.51.100.0/24"]}, AddressNotAllowed),
    ],
    ids=["revoked", "expired", "another address"],
)
def test_a_key_that_no_longer_holds_is_noticed_at_once(
    changes: dict[str, object], error: type[Exception]
) -> None:
    made = make_tenant()
    text = make_key(made.tenant)
    token = client_address.set("192.0.2.1")
    reference = accepted(head(Authorization=f"Bearer {text}"))
    client_address.reset(token)
    change_key(made.tenant, text, **changes)
    with at_most(0.0), pytest.raises(error):
        resolve_reference(reference)


def test_other_scopes_make_another_caller() -> None:
    made = make_tenant()
    text = make_key(made.tenant)
    reference = accepted(head(Authorization=f"Bearer {text}"))
    change_key(made.tenant, text, scopes=["documents:read"], collections=["todos"])
    with at_most(0.0):
        principal, _ = resolve_reference(reference)
    assert "documents:write" not in principal.scopes
    assert principal.collections == frozenset({"todos"})


def test_many_keys_are_read_together() -> None:
    made = make_tenant()
    texts = [make_key(made.tenant) for _ in range(3)]
    standings = [accepted(head(Authorization=f"Bearer {text}")) for text in texts]
    change_key(made.tenant, texts[1], revoked_at=timezone.now())
    read_together(standings)
    resolve_reference(standings[0])
    resolve_reference(standings[2])
    with pytest.raises(InvalidCredentials):
        resolve_reference(standings[1])


def test_a_member_stands_while_it_is_one() -> None:
    made = make_tenant()
    user = make_member(made.tenant, Role.DEVELOPER)
    cookie, _ = make_session(user)
    reference = accepted(
        head(Cookie=f"rillbase_session={cookie}", Rillbase_Tenant=made.slug, Host="localhost")
    )
    principal, _ = resolve_reference(reference)
    assert principal.role is Role.DEVELOPER
    with scoped(tenant_id=made.tenant.id):
        Membership.objects.filter(user=user).delete()
    with at_most(0.0), pytest.raises(NotFound):
        resolve_reference(reference)


def test_keys_of_a_suspended_tenant_are_invalid() -> None:
    made = make_tenant()
    reference = accepted(head(Authorization=f"Bearer {make_key(made.tenant)}"))
    Tenant.objects.using("staff").filter(pk=made.tenant.pk).update(state=Tenant.State.SUSPENDED)
    with at_most(0.0), pytest.raises(TenantSuspended):
        resolve_reference(reference)


def test_an_end_users_token_ends_when_it_expires() -> None:
    made = make_tenant()
    key = make_key(made.tenant, kind=ApiKey.Kind.PUBLISHABLE)
    reference = accepted(head(Rillbase_Key=key))
    resolve_reference(reference, {"sub": "ann", "exp": time.time() + 60})
    with pytest.raises(CredentialsExpired):
        resolve_reference(reference, {"sub": "ann", "exp": time.time() - 1})


def test_a_standing_holds_no_secret() -> None:
    made = make_tenant()
    text = make_key(made.tenant)
    reference = accepted(head(Authorization=f"Bearer {text}"))
    assert text.split("_")[3] not in repr(reference)
