"""Credentials of open connections are checked again, without being stored."""

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
    preload_keys,
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


def accepted(request_head: CallHead) -> CredentialReference:
    principal, _ = authenticate_data_plane(request_head)
    return reference_of(principal, request_head)


def change_key(tenant: Tenant, text: str, **changes: object) -> None:
    with scoped(tenant_id=tenant.id):
        ApiKey.objects.filter(key_id=text.split("_")[2]).update(**changes)


def test_the_reference_of_a_valid_key_resolves_to_the_same_caller() -> None:
    account = make_tenant()
    result = head(Authorization=f"Bearer {make_key(account.tenant, scopes=['documents:read'])}")
    before, _ = authenticate_data_plane(result)
    principal, tenant = resolve_reference(reference_of(before, result))
    assert principal == before
    assert tenant.id == account.tenant.id


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"revoked_at": timezone.now()}, InvalidCredentials),
        ({"expires_at": timezone.now() - datetime.timedelta(seconds=1)}, CredentialsExpired),
        ({"allowed_networks": ["198.51.100.0/24"]}, AddressNotAllowed),
    ],
    ids=["revoked", "expired", "another address"],
)
def test_a_revoked_key_is_noticed_at_once(
    changes: dict[str, object], error: type[Exception]
) -> None:
    account = make_tenant()
    text = make_key(account.tenant)
    token = client_address.set("192.0.2.1")
    reference = accepted(head(Authorization=f"Bearer {text}"))
    client_address.reset(token)
    change_key(account.tenant, text, **changes)
    with at_most(0.0), pytest.raises(error):
        resolve_reference(reference)


def test_other_scopes_make_another_caller() -> None:
    account = make_tenant()
    text = make_key(account.tenant)
    reference = accepted(head(Authorization=f"Bearer {text}"))
    change_key(account.tenant, text, scopes=["documents:read"], collections=["todos"])
    with at_most(0.0):
        principal, _ = resolve_reference(reference)
    assert "documents:write" not in principal.scopes
    assert principal.collections == frozenset({"todos"})


def test_several_keys_are_preloaded_and_a_revoked_one_is_rejected() -> None:
    account = make_tenant()
    texts = [make_key(account.tenant) for _ in range(3)]
    standings = [accepted(head(Authorization=f"Bearer {text}")) for text in texts]
    change_key(account.tenant, texts[1], revoked_at=timezone.now())
    preload_keys(standings)
    resolve_reference(standings[0])
    resolve_reference(standings[2])
    with pytest.raises(InvalidCredentials):
        resolve_reference(standings[1])


def test_the_reference_of_a_member_is_valid_while_the_membership_lasts() -> None:
    account = make_tenant()
    user = make_member(account.tenant, Role.DEVELOPER)
    cookie, _ = make_session(user)
    reference = accepted(
        head(Cookie=f"rillbase_session={cookie}", Rillbase_Tenant=account.slug, Host="localhost")
    )
    principal, _ = resolve_reference(reference)
    assert principal.role is Role.DEVELOPER
    with scoped(tenant_id=account.tenant.id):
        Membership.objects.filter(user=user).delete()
    with at_most(0.0), pytest.raises(NotFound):
        resolve_reference(reference)


def test_keys_of_a_suspended_tenant_are_invalid() -> None:
    account = make_tenant()
    reference = accepted(head(Authorization=f"Bearer {make_key(account.tenant)}"))
    Tenant.objects.using("staff").filter(pk=account.tenant.pk).update(state=Tenant.State.SUSPENDED)
    with at_most(0.0), pytest.raises(TenantSuspended):
        resolve_reference(reference)


def test_an_end_users_token_ends_when_it_expires() -> None:
    account = make_tenant()
    key = make_key(account.tenant, kind=ApiKey.Kind.PUBLISHABLE)
    reference = accepted(head(Rillbase_Key=key))
    resolve_reference(reference, {"sub": "ann", "exp": time.time() + 60})
    with pytest.raises(CredentialsExpired):
        resolve_reference(reference, {"sub": "ann", "exp": time.time() - 1})


def test_a_credential_reference_contains_no_secret() -> None:
    account = make_tenant()
    text = make_key(account.tenant)
    reference = accepted(head(Authorization=f"Bearer {text}"))
    assert text.split("_")[3] not in repr(reference)
