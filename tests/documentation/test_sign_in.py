"""The pages about identity providers: their tokens are accepted, and rules use their claims.

A local issuer signs the claims that a page shows, with the algorithm that the page registers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from tenants.models import ApiKey
from tests.caller import Caller, problem, with_key
from tests.documentation.account import account_of
from tests.documentation.fences import DOCS, Fence, examples, fences
from tests.documentation.issuer import LocalIssuer, local_issuer
from tests.documentation.reader import Reader
from tests.make import TenantAccount, make_key, make_tenant

Json = dict[str, Any]
PAGES = DOCS / "guide" / "authentication"
#: The claim that the read rule of each page uses, and a value that only other users have.
CLAIMS: dict[str, tuple[str, object]] = {
    "auth0": ("https://example.com/team", "red"),
    "clerk": ("org_id", "org_of_others"),
    "supabase": ("app_metadata", {"team": "red"}),
    "keycloak": ("groups", ["red"]),
    "custom": ("team", "red"),
}


@pytest.fixture
def issuer() -> Iterator[LocalIssuer]:
    with local_issuer() as issuer:
        yield issuer


@pytest.fixture
def account(server: str) -> TenantAccount:
    return make_tenant()


def block(name: str, kind: str) -> Json:
    """Return the only JSON of a kind on a page."""
    (fence,) = (one for one in fences(PAGES / f"{name}.md") if one.attributes.get("is") == kind)
    content: Json = json.loads(fence.text)
    return content


def user(server: str, account: TenantAccount, token: str) -> Caller:
    scopes = ["documents:read", "documents:write"]
    key = make_key(account.tenant, kind=ApiKey.Kind.PUBLISHABLE, scopes=scopes)
    return Caller(server, {"Rillbase-Key": key, "Authorization": f"Bearer {token}"})


def notes(caller: Caller) -> list[str]:
    answer = caller.post("/v1/collections/notes/query", {})
    assert answer.status_code == 200, answer.text
    return [item["document"]["text"] for item in answer.json()["items"]]


def test_every_provider_has_a_test() -> None:
    assert {page.stem for page in PAGES.glob("*.md")} == set(CLAIMS)


@pytest.mark.parametrize("name", CLAIMS)
def test_the_steps_of_a_page_work_and_the_rule_separates_users(
    name: str, server: str, account: TenantAccount, issuer: LocalIssuer, tmp_path: Path
) -> None:
    page = examples(PAGES / f"{name}.md")
    Reader(server, account_of(server, account), tmp_path, issuer).try_all(page)
    claims, (claim, other) = block(name, "claims"), CLAIMS[name]
    assert notes(user(server, account, issuer.sign(claims))) == ["Hello"]
    assert notes(user(server, account, issuer.sign(claims | {claim: other}))) == []
    del claims[claim]
    stranger = user(server, account, issuer.sign(claims))
    problem(stranger.post("/v1/collections/notes/query", {}), 403, "forbidden")


@pytest.mark.parametrize("name", CLAIMS)
def test_tokens_that_the_provider_did_not_sign_for_this_app_are_refused(
    name: str, server: str, account: TenantAccount, issuer: LocalIssuer
) -> None:
    registration = _registration(name)
    register(server, account, issuer.adopt(registration))
    claims = block(name, "claims")
    (algorithm,) = registration["algorithms"]
    forged = {
        "RS256": rsa.generate_private_key(65537, 2048),
        "ES256": ec.generate_private_key(ec.SECP256R1()),
        "HS256": "another secret of at least thirty-two bytes",
    }[algorithm]
    for token in (
        issuer.sign(claims | {"aud": "another-app"}),
        issuer.sign(claims | {"iss": claims["iss"].rstrip("/") + "/other"}),
        LocalIssuer.sign_with(forged, algorithm, claims),
    ):
        problem(user(server, account, token).get("/v1/whoami"), 401, "invalid_credentials")
    who = user(server, account, issuer.sign(claims)).get("/v1/whoami").json()
    assert who["auth"]["sub"] == claims["sub"]


def test_the_legacy_secret_of_supabase_is_an_alternative(
    server: str, account: TenantAccount, issuer: LocalIssuer
) -> None:
    register(server, account, issuer.adopt(block("supabase", "alternative")))
    claims = block("supabase", "claims")
    who = user(server, account, issuer.sign(claims)).get("/v1/whoami").json()
    assert who["auth"]["sub"] == claims["sub"]


@pytest.mark.parametrize(("role", "status"), [("org:admin", 201), ("org:member", 403)])
def test_the_role_in_an_organization_decides_who_writes(
    role: str, status: int, server: str, account: TenantAccount, issuer: LocalIssuer
) -> None:
    register(server, account, issuer.adopt(_registration("clerk")))
    token = issuer.sign(block("clerk", "claims") | {"org_role": role})
    assert status_of_write(server, account, token, "clerk") == status


@pytest.mark.parametrize(("roles", "status"), [(["editor"], 201), (["offline_access"], 403)])
def test_a_realm_role_decides_who_writes(
    roles: list[str], status: int, server: str, account: TenantAccount, issuer: LocalIssuer
) -> None:
    register(server, account, issuer.adopt(_registration("keycloak")))
    token = issuer.sign(block("keycloak", "claims") | {"realm_access": {"roles": roles}})
    assert status_of_write(server, account, token, "keycloak") == status


def status_of_write(server: str, account: TenantAccount, token: str, name: str) -> int:
    """Create the page's collection and insert the page's document."""
    admin = with_key(server, account.admin_key)
    collection = _body(_request(name, "/collections"))
    assert admin.post(f"/api/v1/tenants/{account.slug}/collections", collection).status_code == 201
    document = _body(_request(name, "/documents"))
    return (
        user(server, account, token).post("/v1/collections/notes/documents", document).status_code
    )


def register(server: str, account: TenantAccount, registration: Json) -> None:
    admin = with_key(server, account.admin_key)
    answer = admin.post(f"/api/v1/tenants/{account.slug}/issuers", registration)
    assert answer.status_code == 201, answer.text


def _registration(name: str) -> Json:
    return _body(_request(name, "/issuers"))


def _request(name: str, path: str) -> Fence:
    """Return the page's request to a path."""
    pattern = re.compile(rf"POST \S+{path}\n")
    return next(one for one in fences(PAGES / f"{name}.md") if pattern.match(one.text))


def _body(fence: Fence) -> Json:
    body: Json = json.loads(fence.text.partition("\n\n")[2])
    return body
