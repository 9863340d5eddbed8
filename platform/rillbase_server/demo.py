"""The demo tenant of a development installation: something to log in to and keys to try.

Its login and secret key are kept in a file that only the installation's user can read, so every
start shows the same ones. If the file is missing, a new key is created.
"""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from django.contrib.auth.hashers import make_password
from django.db import transaction
from django.utils import timezone

from analytics.samples import load_sample
from documents.samples import load_samples
from foundation.scope import scoped
from tenants import keys
from tenants.actions.local_links import do_issue
from tenants.models import ApiKey, Membership, Tenant, User
from tenants.roles import ALL_SCOPES, Role

EMAIL = "demo@rillbase.local"
SLUG = "demo"
PLAN = "unlimited"
PUBLISHABLE_NAME = "Demo key for pages"
PUBLISHABLE_SCOPES = ("documents:read", "documents:write")
#: Ports of the development servers of Next.js, Angular, and Vite, which takes the next free one.
DEV_SERVER_PORTS = (3000, 4200, 5173, 5174)
DEV_SERVER_ORIGINS = [
    f"http://{host}:{port}" for port in DEV_SERVER_PORTS for host in ("localhost", "127.0.0.1")
]


@dataclass(frozen=True, slots=True)
class DemoTenant:
    """The credentials of the demo tenant."""

    email: str
    password: str
    tenant: str
    api_key: str
    publishable_key: str = ""


#: What the file has to hold; the database has the publishable key.
STORED = ("email", "password", "tenant", "api_key")


def ensure_demo(path: Path) -> DemoTenant:
    """Return the demo's login and keys, creating what is missing."""
    demo = _read(path)
    with transaction.atomic(using="staff"):
        user = User.objects.using("staff").filter(email=EMAIL).first()
        tenant = Tenant.objects.using("staff").filter(slug=SLUG).first()
    if demo is not None and user is not None and tenant is not None and _key_works(demo):
        return replace(demo, publishable_key=_publishable_key(user, tenant))
    password = demo.password if demo else secrets.token_urlsafe(12)
    user = _ensure_user(user, password)
    tenant, key = _ensure_tenant_with_key(user, tenant)
    return DemoTenant(EMAIL, password, SLUG, key, _publishable_key(user, tenant))


def ensure_samples() -> None:
    """Load the sample data sets into the demo tenant, unless they have been changed."""
    tenants = Tenant.objects.using("staff").filter(slug=SLUG, state=Tenant.State.ACTIVE)
    tenant_id = tenants.values_list("pk", flat=True).first()
    if tenant_id is not None:
        load_samples(tenant_id)
        load_sample(tenant_id)


def write_demo(path: Path, demo: DemoTenant) -> None:
    """Write the demo's secrets and a sign-in link to a file that only its owner can read."""
    user = User.objects.using("auth").get(email=EMAIL)
    content = {**asdict(demo), "sign_in_link": do_issue(user)}
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(content, file)


def _read(path: Path) -> DemoTenant | None:
    try:
        values = json.loads(path.read_text())
        return DemoTenant(**{name: values[name] for name in STORED})
    except (FileNotFoundError, KeyError, TypeError, ValueError):
        return None


def _key_works(demo: DemoTenant) -> bool:
    key = keys.parse(demo.api_key)
    row = ApiKey.unscoped.using("staff").filter(key_id=key.key_id, revoked_at=None).first()
    return row is not None and keys.matches(key.text, bytes(row.secret_hash))


def _ensure_user(user: User | None, password: str) -> User:
    if user is None:
        user = User(email=EMAIL, name="Demo", is_staff=True, email_verified_at=timezone.now())
    user.password = make_password(password)
    user.save(using="staff")
    return user


def _ensure_tenant_with_key(user: User, tenant: Tenant | None) -> tuple[Tenant, str]:
    tenant = tenant or Tenant(slug=SLUG, name="Demo", plan_id=PLAN, cors_origins=DEV_SERVER_ORIGINS)
    key = keys.mint(keys.Prefix.SECRET)
    with scoped(tenant_id=tenant.id, user_id=user.id):
        if tenant._state.adding:
            tenant.save()
            Membership.objects.create(user=user, role=Role.OWNER)
        ApiKey.objects.create(
            kind=ApiKey.Kind.SECRET,
            name="Demo key",
            key_id=key.key_id,
            secret_hash=keys.stored_hash(key.text),
            scopes=[s for s in ALL_SCOPES if not s.endswith(":*")],
        )
    return tenant, key.text


def _publishable_key(user: User, tenant: Tenant) -> str:
    """Return the key for pages, which access rules restrict, and create it if it is missing."""
    with scoped(tenant_id=tenant.id, user_id=user.id):
        active = ApiKey.objects.filter(name=PUBLISHABLE_NAME, revoked_at=None, expires_at=None)
        if existing := active.values_list("public_text", flat=True).first():
            return existing
        key = keys.mint(keys.Prefix.PUBLISHABLE)
        ApiKey.objects.create(
            kind=ApiKey.Kind.PUBLISHABLE,
            name=PUBLISHABLE_NAME,
            key_id=key.key_id,
            secret_hash=keys.stored_hash(key.text),
            public_text=key.text,
            scopes=[*PUBLISHABLE_SCOPES],
        )
    return key.text
