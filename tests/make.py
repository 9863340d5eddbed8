"""Creates users, tenants, keys and sessions in the database, new ones each time."""

from __future__ import annotations

import datetime
import secrets
from dataclasses import dataclass

from django.contrib.auth.hashers import make_password
from django.utils import timezone

from foundation.scope import scoped
from tenants import keys
from tenants.credentials import sessions
from tenants.models import ApiKey, Membership, PersonalToken, Tenant, User
from tenants.roles import DATA_SCOPES, Role

PASSWORD = "correct horse battery"
_HASH = make_password(PASSWORD)


@dataclass(frozen=True)
class TenantAccount:
    """A tenant, its owner and an admin key."""

    tenant: Tenant
    owner: User
    admin_key: str

    @property
    def slug(self) -> str:
        return self.tenant.slug


def unique(prefix: str) -> str:
    """Return a unique name."""
    return f"{prefix}-{secrets.token_hex(5)}"


def make_user(
    *,
    email: str = "",
    is_staff: bool = False,
    is_active: bool = True,
    is_verified: bool = True,
) -> User:
    """Create a user whose password is `PASSWORD`."""
    user = User(
        email=email or unique("user") + "@example.test",
        name="Test User",
        password=_HASH,
        is_staff=is_staff,
        is_active=is_active,
        email_verified_at=timezone.now() if is_verified else None,
    )
    user.save(using="staff")
    return user


def make_tenant(*, plan: str = "standard", owner: User | None = None) -> TenantAccount:
    """Create a tenant with an owner and an admin key."""
    owner = owner or make_user()
    tenant = Tenant(slug=unique("t"), name="Test tenant", plan_id=plan)
    with scoped(tenant_id=tenant.id, user_id=owner.id):
        tenant.save()
        Membership.objects.create(user=owner, role=Role.OWNER)
    return TenantAccount(tenant, owner, make_key(tenant, scopes=[*DATA_SCOPES, "admin"]))


def make_member(tenant: Tenant, role: Role, *, user: User | None = None) -> User:
    """Create a user who is a member of the tenant."""
    user = user or make_user()
    with scoped(tenant_id=tenant.id):
        Membership.objects.create(user=user, role=role)
    return user


def make_key(
    tenant: Tenant,
    *,
    scopes: list[str] | None = None,
    kind: ApiKey.Kind = ApiKey.Kind.SECRET,
    expires_at: datetime.datetime | None = None,
    allowed_networks: list[str] | None = None,
    collections: list[str] | None = None,
) -> str:
    """Create an API key and return its text."""
    prefix = keys.Prefix.SECRET if kind == ApiKey.Kind.SECRET else keys.Prefix.PUBLISHABLE
    key = keys.mint(prefix)
    with scoped(tenant_id=tenant.id):
        ApiKey.objects.create(
            kind=kind,
            name=unique("key"),
            key_id=key.key_id,
            secret_hash=keys.stored_hash(key.text),
            public_text=key.text if kind == ApiKey.Kind.PUBLISHABLE else "",
            scopes=list(DATA_SCOPES) if scopes is None else scopes,
            expires_at=expires_at,
            allowed_networks=allowed_networks or [],
            collections=collections or [],
        )
    return key.text


def make_personal_token(user: User, *, tenant: Tenant | None = None) -> str:
    """Create a personal token, which may be bound to a tenant, and return its text."""
    text = keys.mint(keys.Prefix.PERSONAL)
    with scoped(user_id=user.id):
        PersonalToken.objects.create(
            user=user,
            tenant=tenant,
            name=unique("token"),
            key_id=text.key_id,
            secret_hash=keys.stored_hash(text.text),
        )
    return text.text


def make_session(user: User) -> tuple[str, str]:
    """Sign in a user. Return the cookie's value and the CSRF token."""
    _, token = sessions.start(user, "tests")
    return token, sessions.csrf_token(token)
