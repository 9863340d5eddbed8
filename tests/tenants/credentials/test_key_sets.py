"""Key sets are on servers that tenants choose, which may answer anything, or not at all."""

from __future__ import annotations

import base64
import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from django.db import connections

from tests.caller import problem, with_key
from tests.http_receiver import receiver
from tests.loopback_targets import loopback_targets
from tests.make import make_tenant
from tests.tenants.credentials.jwks import jwk
from tests.tenants.credentials.test_end_users import claims, end_user, register
from tests.waiting import wait_until


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _token(kid: str = "one") -> str:
    return jwt.encode(
        claims(), ec.generate_private_key(ec.SECP256R1()), "ES256", headers={"kid": kid}
    )


@pytest.mark.usefixtures("short_probes")
@pytest.mark.parametrize(
    "document",
    [
        b'{"keys": 5}',
        b'{"keys": null}',
        b"[" * 50_000,
        b'{"keys": [' + b"[" * 50_000,
    ],
)
def test_a_malformed_key_set_makes_the_issuer_unavailable(server: str, document: bytes) -> None:
    account = make_tenant()
    with receiver() as jwks:
        jwks.answer(200, document)
        register(server, account, algorithms=["ES256"], jwks_url=jwks.url)
        problem(end_user(server, account, _token()).get("/v1/whoami"), 503, "unavailable")


@pytest.mark.parametrize(
    "entry",
    [
        5,
        None,
        {"kty": "RSA", "kid": "one", "n": 5, "e": {}},
        {"kty": "RSA", "kid": "one", "n": "AQAB", "e": "AQAB"},
        {"kty": ["EC"], "kid": "one"},
        {"kty": "EC", "kid": "one", "crv": "P-256", "x": [], "y": 1},
        {"kty": "OKP", "kid": "one", "crv": "Ed25519", "x": 7},
        {"kty": "oct", "kid": "one", "k": 1},
    ],
)
def test_malformed_keys_are_skipped(server: str, entry: object) -> None:
    account = make_tenant()
    with receiver() as jwks:
        jwks.answer(200, json.dumps({"keys": [entry]}).encode())
        register(server, account, algorithms=["ES256", "RS256", "EdDSA"], jwks_url=jwks.url)
        problem(end_user(server, account, _token()).get("/v1/whoami"), 401, "invalid_credentials")


def test_a_shared_secret_in_a_key_set_is_no_key(server: str) -> None:
    """A key set is public, so anyone could sign with a secret that it contains."""
    account, secret = make_tenant(), b"s" * 32
    with receiver() as jwks:
        shared = {"kty": "oct", "kid": "one", "k": _text(secret), "alg": "HS256"}
        jwks.answer(200, json.dumps({"keys": [shared]}).encode())
        register(server, account, algorithms=["RS256"], jwks_url=jwks.url)
        for algorithm in ("HS256", "RS256"):
            forged = _signed_by_hand(algorithm, secret)
            problem(end_user(server, account, forged).get("/v1/whoami"), 401, "invalid_credentials")


def _signed_by_hand(algorithm: str, secret: bytes) -> str:
    import hashlib
    import hmac

    head = _text(json.dumps({"alg": algorithm, "kid": "one"}).encode())
    signed = f"{head}.{_text(json.dumps(claims()).encode())}"
    return f"{signed}.{_text(hmac.new(secret, signed.encode(), hashlib.sha256).digest())}"


@pytest.mark.parametrize("part", ["head", "payload"])
def test_a_deeply_nested_token_is_no_token(server: str, part: str) -> None:
    account = make_tenant()
    register(server, account, algorithms=["HS256"], secret="s" * 40)
    bomb, plain = _text(b"[" * 5_000), _text(b'{"alg":"HS256"}')
    token = f"{bomb}.{plain}.AA" if part == "head" else f"{plain}.{bomb}.AA"
    problem(end_user(server, account, token).get("/v1/whoami"), 401, "invalid_credentials")


@pytest.mark.usefixtures("short_probes")
def test_a_failed_key_set_is_not_retried_for_a_while(server: str) -> None:
    account = make_tenant()
    with receiver() as jwks:
        jwks.answer(500)
        register(server, account, algorithms=["ES256"], jwks_url=jwks.url)
        user = end_user(server, account, _token())
        for _ in range(3):
            problem(user.get("/v1/whoami"), 503, "unavailable")
        assert len(jwks.requests) == 1


def test_a_key_set_whose_server_hangs_delays_no_other_tenant(server: str) -> None:
    hanging, other = make_tenant(), make_tenant()
    with socket.create_server(("127.0.0.1", 0), backlog=64) as silent:
        silent.settimeout(5)
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/keys"
        register(server, hanging, algorithms=["ES256"], jwks_url=url)
        user = end_user(server, hanging, _token())
        with ThreadPoolExecutor(24) as pool:
            calls = [pool.submit(user.get, "/v1/whoami") for _ in range(24)]
            fetching, _ = silent.accept()
            begin = time.monotonic()
            mine = with_key(server, other.admin_key).get("/v1/whoami")
            took_s = time.monotonic() - begin
            fetching.close()
            for call in calls:
                problem(call.result(), 503, "unavailable")
        assert mine.status_code == 200
        assert took_s < 3


def test_hanging_key_sets_of_one_tenant_keep_no_other_from_reading_its_own(server: str) -> None:
    """Each of the hanging sets has the maximum number of waiting callers."""
    hanging, other = make_tenant(), make_tenant()
    key = ec.generate_private_key(ec.SECP256R1())
    with (
        socket.create_server(("127.0.0.1", 0), backlog=64) as silent,
        receiver() as jwks,
        ThreadPoolExecutor(24) as pool,
    ):
        silent.settimeout(5)
        jwks.answer(200, json.dumps({"keys": [jwk(key, "one")]}).encode())
        register(server, other, algorithms=["ES256"], jwks_url=jwks.url)
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/keys"
        register(server, hanging, algorithms=["ES256"], jwks_url=url)
        calls = [
            pool.submit(end_user(server, hanging, _token()).get, "/v1/whoami") for _ in range(24)
        ]
        fetching, _ = silent.accept()
        # Callers beyond the limit are answered at once; the others wait for the silent server.
        wait_until(lambda: sum(call.done() for call in calls) >= 20, what="most to be refused")
        token = jwt.encode(claims(), key, "ES256", headers={"kid": "one"})
        mine = end_user(server, other, token).get("/v1/whoami")
        fetching.close()
        for call in calls:
            problem(call.result(), 503, "unavailable")
    assert mine.status_code == 200, mine.text


def test_failures_of_a_key_set_do_not_reveal_what_listens_on_this_machine(server: str) -> None:
    def ask(url: str) -> object:
        try:
            account = make_tenant()
            register(server, account, algorithms=["ES256"], jwks_url=url)
            answer = end_user(server, account, _token()).get("/v1/whoami")
        finally:
            connections.close_all()
        refusal = problem(answer, 503, "unavailable")
        return [refusal["detail"], refusal["errors"], answer.headers.get("Retry-After")]

    with loopback_targets() as targets, ThreadPoolExecutor(4) as threads:
        result = dict(zip(targets, threads.map(ask, targets.values()), strict=True))
    first = result["a closed port"]
    assert all(answer == first for answer in result.values()), result
