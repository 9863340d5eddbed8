"""End users' tokens: only issuers that the tenant registered are trusted."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tenants.models import ApiKey
from tests.caller import Caller, problem, with_key
from tests.http_receiver import receiver
from tests.make import TenantAccount, make_key, make_tenant
from tests.revocation import refused_within_a_second
from tests.tenants.credentials.jwks import jwk

ISSUER, AUDIENCE = "https://login.example.com/", "todo-app"
SECRET = "a shared secret of at least thirty-two bytes"


def claims(**changes: object) -> dict[str, object]:
    now = int(time.time())
    return {"iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "iat": now, "exp": now + 60, **changes}


def register(server: str, account: TenantAccount, **fields: object) -> None:
    body = {"name": "login", "issuer": ISSUER, "audience": AUDIENCE, **fields}
    answer = with_key(server, account.admin_key).post(
        f"/api/v1/tenants/{account.slug}/issuers", body
    )
    assert answer.status_code == 201, answer.text


def end_user(server: str, account: TenantAccount, token: str) -> Caller:
    key = make_key(account.tenant, kind=ApiKey.Kind.PUBLISHABLE, scopes=["documents:read"])
    return Caller(server, {"Rillbase-Key": key, "Authorization": f"Bearer {token}"})


@pytest.fixture
def account(server: str) -> TenantAccount:
    account = make_tenant()
    register(server, account, algorithms=["HS256"], secret=SECRET)
    return account


def test_a_valid_token_identifies_its_user(server: str, account: TenantAccount) -> None:
    token = jwt.encode(claims(role="editor"), SECRET, "HS256")
    who = end_user(server, account, token).get("/v1/whoami").json()
    assert who["kind"] == "end_user"
    assert who["auth"]["sub"] == "ada"
    assert who["auth"]["role"] == "editor"


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"exp": 1}, "credentials_expired"),
        ({"nbf": 4_000_000_000}, "invalid_credentials"),
        ({"iss": "https://evil.example/"}, "invalid_credentials"),
        ({"aud": "another-app"}, "invalid_credentials"),
        ({"exp": None}, "invalid_credentials"),
        ({"sub": None}, "invalid_credentials"),
    ],
)
def test_a_token_with_wrong_claims_is_refused(
    server: str, account: TenantAccount, changes: dict[str, object], code: str
) -> None:
    payload = {k: v for k, v in claims(**changes).items() if v is not None}
    token = jwt.encode(payload, SECRET, "HS256")
    problem(end_user(server, account, token).get("/v1/whoami"), 401, code)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"iat": -86_300, "exp": 315_360_000}, None),
        ({"iat": -86_500, "exp": 315_360_000}, "credentials_expired"),
        ({"iat": None, "exp": 86_300}, None),
        ({"iat": None, "exp": 86_500}, "invalid_credentials"),
        ({"iat": "today", "exp": 60}, "invalid_credentials"),
    ],
    ids=["younger", "older", "short without iat", "long without iat", "no number"],
)
def test_a_token_is_valid_for_a_day_at_most(
    server: str, account: TenantAccount, changes: dict[str, Any], code: str | None
) -> None:
    """`changes` are relative to now."""
    now = int(time.time())
    moved = {k: now + v if isinstance(v, int) else v for k, v in changes.items()}
    payload = {k: v for k, v in claims(**moved).items() if v is not None}
    answer = end_user(server, account, jwt.encode(payload, SECRET, "HS256")).get("/v1/whoami")
    if code is None:
        assert answer.status_code == 200, answer.text
    else:
        problem(answer, 401, code)


def test_the_greatest_age_of_tokens_is_part_of_the_registration(server: str) -> None:
    account = make_tenant()
    register(server, account, algorithms=["HS256"], secret=SECRET, max_token_age_s=60, leeway_s=0)
    (issuer,) = (
        with_key(server, account.admin_key)
        .get(f"/api/v1/tenants/{account.slug}/issuers")
        .json()["items"]
    )
    assert issuer["max_token_age_s"] == 60
    old = jwt.encode(claims(iat=int(time.time()) - 61), SECRET, "HS256")
    problem(end_user(server, account, old).get("/v1/whoami"), 401, "credentials_expired")


def test_another_secret_another_algorithm_and_none_are_refused(
    server: str, account: TenantAccount
) -> None:
    tokens = [
        jwt.encode(claims(), "another secret of thirty-two bytes and more", "HS256"),
        jwt.encode(claims(), SECRET + "x" * 40, "HS512"),
        jwt.encode(claims(), "", "none"),
        jwt.encode(claims(), SECRET, "HS256")[:-3],
        "a.b.c",
    ]
    for token in tokens:
        problem(end_user(server, account, token).get("/v1/whoami"), 401, "invalid_credentials")


def test_a_token_of_another_tenants_issuer_is_refused(server: str, account: TenantAccount) -> None:
    stranger = make_tenant()
    token = jwt.encode(claims(), SECRET, "HS256")
    problem(end_user(server, stranger, token).get("/v1/whoami"), 401, "invalid_credentials")


def test_a_token_without_a_publishable_key_is_refused(server: str) -> None:
    token = jwt.encode(claims(), SECRET, "HS256")
    problem(with_key(server, token).get("/v1/whoami"), 401, "invalid_credentials")


def test_a_little_clock_skew_is_forgiven(server: str, account: TenantAccount) -> None:
    token = jwt.encode(claims(exp=int(time.time()) - 10), SECRET, "HS256")
    assert end_user(server, account, token).get("/v1/whoami").status_code == 200


def test_keys_are_read_from_the_issuers_key_set_and_read_again_when_they_change(
    server: str,
) -> None:
    account, first = make_tenant(), ec.generate_private_key(ec.SECP256R1())
    with receiver() as jwks:
        jwks.answer(200, json.dumps({"keys": [jwk(first, "one"), {"kty": "odd"}]}).encode())
        register(server, account, algorithms=["ES256"], jwks_url=jwks.url)
        token = jwt.encode(claims(), first, "ES256", headers={"kid": "one"})
        user = end_user(server, account, token)
        assert user.get("/v1/whoami").status_code == 200
        assert user.get("/v1/whoami").status_code == 200
        assert len(jwks.requests) == 1
        unknown = jwt.encode(claims(), first, "ES256", headers={"kid": "two"})
        problem(end_user(server, account, unknown).get("/v1/whoami"), 401, "invalid_credentials")


def test_a_public_key_is_never_a_shared_secret(server: str) -> None:
    """The classic confusion: sign with HS256 under the issuer's public RSA key."""
    account, key = make_tenant(), rsa.generate_private_key(65537, 2048)
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    with receiver() as jwks:
        public_jwk = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key()))
        jwks.answer(200, json.dumps({"keys": [{**public_jwk, "kid": "one"}]}).encode())
        register(server, account, algorithms=["RS256"], jwks_url=jwks.url)
        forged = _hs256(claims(), public)
        problem(end_user(server, account, forged).get("/v1/whoami"), 401, "invalid_credentials")


def _hs256(payload: dict[str, object], key: bytes) -> str:
    """Sign by hand: the library refuses to use a public key as a secret."""
    import hashlib
    import hmac

    def part(raw: bytes) -> str:
        return base64.urlsafe_b64encode(raw).decode().rstrip("=")

    head = part(json.dumps({"alg": "HS256", "kid": "one"}).encode())
    signed = f"{head}.{part(json.dumps(payload).encode())}"
    return f"{signed}.{part(hmac.new(key, signed.encode(), hashlib.sha256).digest())}"


@pytest.mark.usefixtures("short_probes")
def test_an_issuer_without_its_key_set_answers_unavailable(server: str) -> None:
    account, key = make_tenant(), ec.generate_private_key(ec.SECP256R1())
    with receiver() as jwks:
        jwks.answer(500, b"")
        register(server, account, algorithms=["ES256"], jwks_url=jwks.url)
        token = jwt.encode(claims(), key, "ES256", headers={"kid": "one"})
        problem(end_user(server, account, token).get("/v1/whoami"), 503, "unavailable")


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"algorithms": ["HS256"]}, "/jwks_url"),
        ({"algorithms": ["HS256"], "secret": SECRET, "jwks_url": "https://x.example"}, "/jwks_url"),
        ({"algorithms": ["RS256"], "secret": SECRET}, "/algorithms"),
        ({"algorithms": ["HS256"], "secret": "short"}, "/secret"),
        ({"algorithms": ["none"], "secret": SECRET}, "/algorithms/0"),
        ({"algorithms": ["RS256"], "jwks_url": "https://10.0.0.1/keys"}, "/jwks_url"),
        ({"algorithms": ["RS256"], "jwks_url": "file:///etc/passwd"}, "/jwks_url"),
    ],
)
def test_an_inconsistent_registration_is_rejected(
    server: str, fields: dict[str, object], pointer: str
) -> None:
    account = make_tenant()
    body = {"name": "login", "issuer": ISSUER, "audience": AUDIENCE, **fields}
    answer = with_key(server, account.admin_key).post(
        f"/api/v1/tenants/{account.slug}/issuers", body
    )
    assert problem(answer, 400, "invalid_body")["errors"][0]["pointer"] == pointer


def test_a_shared_secret_is_never_shown_and_kept_sealed(
    server: str, account: TenantAccount
) -> None:
    caller = with_key(server, account.admin_key)
    text = caller.get(f"/api/v1/tenants/{account.slug}/issuers").text
    log = caller.get(f"/api/v1/tenants/{account.slug}/audit-log").text
    assert SECRET not in text + log


def test_tokens_of_a_deleted_issuer_are_rejected(server: str, account: TenantAccount) -> None:
    caller = with_key(server, account.admin_key)
    path = f"/api/v1/tenants/{account.slug}/issuers"
    user = end_user(server, account, jwt.encode(claims(), SECRET, "HS256"))
    assert user.get("/v1/whoami").status_code == 200
    (issuer,) = caller.get(path).json()["items"]
    assert caller.delete(f"{path}/{issuer['id']}").status_code == 204
    refused_within_a_second(lambda: user.get("/v1/whoami"))


@pytest.mark.parametrize(
    "claim", [b'"role": NaN', b'"role": "\\ud800"', b'"sub": "grace"', b'"role": 1, "role": 2']
)
def test_claims_that_are_no_strict_json_are_refused(
    server: str, account: TenantAccount, claim: bytes
) -> None:
    """Parsers differ in which value of a repeated name they use."""
    payload = json.dumps(claims()).encode()[:-1] + b", " + claim + b"}"
    token = jwt.api_jws.encode(payload, SECRET, "HS256")
    problem(end_user(server, account, token).get("/v1/whoami"), 401, "invalid_credentials")
