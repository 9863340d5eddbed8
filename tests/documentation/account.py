"""What a reader of the documentation has: a tenant, and credentials for it."""

from __future__ import annotations

from dataclasses import dataclass

from tests.caller import signed_in, with_key
from tests.make import TenantAccount, make_key


@dataclass(frozen=True)
class Account:
    """A tenant, its owner, and the credentials that stand for those of the pages."""

    slug: str
    email: str
    admin_key: str
    publishable_key: str
    #: Empty: the pages use none.
    personal_token: str = ""


def account_of(base: str, account: TenantAccount) -> Account:
    """Return the account of a tenant of the suite's own server."""
    from tenants.models import ApiKey

    scopes = ["documents:read", "documents:write"]
    publishable = make_key(account.tenant, kind=ApiKey.Kind.PUBLISHABLE, scopes=scopes)
    browser = signed_in(base, account.owner)
    token = browser.post("/api/v1/me/tokens", {"name": "docs"}).json()["secret"]
    return Account(account.slug, account.owner.email, account.admin_key, publishable, token)


def account_of_installation(url: str, key: str) -> Account:
    """Return the account that `manage.py up` has created."""
    admin = with_key(url, key)
    slug = admin.get("/v1/whoami").json()["tenant"]
    declaration = {
        "kind": "publishable",
        "name": "Guides",
        "scopes": ["documents:read", "documents:write"],
    }
    created = admin.post(f"/api/v1/tenants/{slug}/api-keys", declaration)
    assert created.status_code == 201, created.text
    return Account(slug, "demo@rillbase.local", key, created.json()["key"])
