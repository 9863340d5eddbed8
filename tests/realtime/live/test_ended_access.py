"""What ends the access of a caller ends what the caller opened, over every protocol."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import jwt
import pytest
import requests
from cryptography.hazmat.primitives.asymmetric import ec
from websockets.exceptions import ConnectionClosed

from foundation.json_types import JsonObject
from foundation.scope import scoped
from tenants.credentials import key_sets
from tenants.models import ApiKey, Membership, Tenant
from tenants.roles import Role
from tests.caller import Caller, with_key
from tests.documents.collection import CollectionClient, make_collection
from tests.http_receiver import Receiver, receiver
from tests.make import make_key, make_member, make_personal_token
from tests.realtime.client import Client, opened
from tests.realtime.live.answer import subscribe
from tests.rillbase_server.graphql import graphql_socket
from tests.rillbase_server.graphql.graphql_socket import GraphqlSocket
from tests.rillbase_server.graphql.test_socket import WATCH
from tests.tenants.credentials.jwks import jwk

PAGE = "https://app.example"
ISSUER, AUDIENCE = "https://login.example.com/", "todo-app"
SECRET = "a shared secret of at least thirty-two bytes"
#: A second, and a machine that is busy with other tests.
ENDS_WITHIN_S = 5.0
#: The rest of a token's maximum age, in which the connections are opened.
TOO_OLD_IN_S = 10

pytestmark = [
    pytest.mark.usefixtures("background"),
    pytest.mark.backend("postgres", reason="access does not depend on the backend"),
]


@dataclass(frozen=True)
class Access:
    """A caller that may read a collection, and the credentials by which it does."""

    todos: CollectionClient
    #: As members of `hello`: `key`, `token`, `tenant`.
    credentials: Mapping[str, str]
    #: The server of its issuer's key set.
    jwks: Receiver | None = None
    issuer: str = field(default="", compare=False)

    @property
    def tenant(self) -> Tenant:
        return self.todos.account.tenant

    @property
    def admin(self) -> Caller:
        return with_key(self.todos.caller.base, self.todos.account.admin_key)

    @property
    def headers(self) -> dict[str, str]:
        named = {"key": "Rillbase-Key", "tenant": "Rillbase-Tenant"}
        headers = {named[name]: text for name, text in self.credentials.items() if name in named}
        if token := self.credentials.get("token"):
            headers["Authorization"] = f"Bearer {token}"
        return {**headers, "Origin": PAGE}


def register(access: Access, **fields: object) -> Access:
    """Register the issuer of a token."""
    body = {"name": "login", "issuer": ISSUER, "audience": AUDIENCE, **fields}
    if "jwks_url" not in fields:
        body = {"algorithms": ["HS256"], "secret": SECRET, **body}
    answer = access.admin.post(f"/api/v1/tenants/{access.tenant.slug}/issuers", body)
    assert answer.status_code == 201, answer.text
    return replace(access, issuer=answer.json()["id"])


def claims(**changes: object) -> dict[str, object]:
    now = int(time.time())
    return {"iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "iat": now, "exp": now + 600, **changes}


def with_publishable_key(todos: CollectionClient) -> Access:
    tenant = todos.account.tenant
    key = make_key(tenant, kind=ApiKey.Kind.PUBLISHABLE, scopes=["documents:read"])
    return Access(todos, {"key": key})


def with_token(todos: CollectionClient, **fields: object) -> Access:
    access = register(with_publishable_key(todos), **fields)
    token = jwt.encode(claims(), SECRET, "HS256")
    return replace(access, credentials={**access.credentials, "token": token})


def with_old_token(todos: CollectionClient) -> Access:
    """A token that reaches the maximum age of its issuer's tokens in a few seconds."""
    access = register(with_publishable_key(todos), max_token_age_s=60, leeway_s=0)
    token = jwt.encode(claims(iat=int(time.time()) - 60 + TOO_OLD_IN_S), SECRET, "HS256")
    return replace(access, credentials={**access.credentials, "token": token})


def with_key_of_a_set(todos: CollectionClient, jwks: Receiver) -> Access:
    key = ec.generate_private_key(ec.SECP256R1())
    jwks.answer(200, json.dumps({"keys": [jwk(key, "one")]}).encode())
    access = register(with_publishable_key(todos), algorithms=["ES256"], jwks_url=jwks.url)
    token = jwt.encode(claims(), key, "ES256", headers={"kid": "one"})
    return replace(access, credentials={**access.credentials, "token": token}, jwks=jwks)


def with_membership(todos: CollectionClient) -> Access:
    user = make_member(todos.account.tenant, Role.VIEWER)
    token = make_personal_token(user)
    return Access(todos, {"token": token, "tenant": todos.account.slug})


def delete_issuer(access: Access) -> None:
    path = f"/api/v1/tenants/{access.tenant.slug}/issuers/{access.issuer}"
    assert access.admin.delete(path).status_code == 204


def replace_secret(access: Access) -> None:
    delete_issuer(access)
    register(access, secret="another secret of at least thirty-two bytes")


def replace_audience(access: Access) -> None:
    delete_issuer(access)
    register(access, audience="another-app")


def withdraw_key(access: Access) -> None:
    assert access.jwks is not None
    other = ec.generate_private_key(ec.SECP256R1())
    access.jwks.answer(200, json.dumps({"keys": [jwk(other, "two")]}).encode())


def exchange_key(access: Access) -> None:
    assert access.jwks is not None
    other = ec.generate_private_key(ec.SECP256R1())
    access.jwks.answer(200, json.dumps({"keys": [jwk(other, "one")]}).encode())


def wait_for_its_age(access: Access) -> None:
    """The token gets too old by itself."""


def revoke_key(access: Access) -> None:
    with scoped(tenant_id=access.tenant.id):
        key = ApiKey.objects.get(key_id=access.credentials["key"].split("_")[2])
    path = f"/api/v1/tenants/{access.tenant.slug}/api-keys/{key.id}"
    assert access.admin.delete(path).status_code == 200


def suspend_tenant(access: Access) -> None:
    tenants = Tenant.objects.using("staff").filter(pk=access.tenant.pk)
    tenants.update(state=Tenant.State.SUSPENDED)


def remove_member(access: Access) -> None:
    members = Membership.unscoped.using("staff").filter(
        tenant=access.tenant, role=Role.VIEWER.value
    )
    members.get().delete(using="staff")


def remove_origin(access: Access) -> None:
    answer = access.admin.patch(f"/api/v1/tenants/{access.tenant.slug}", {"cors_origins": []})
    assert answer.status_code == 200, answer.text


@dataclass(frozen=True)
class Change:
    """Something that ends a caller's access, and how the server then refuses the caller."""

    access: Callable[..., Access]
    make: Callable[[Access], None]
    status: int = 401
    close_code: int = 4401
    #: Of calls over a connection that stays open: the client may send another token.
    error: str = ""

    def outcomes(self) -> dict[str, str]:
        socket = self.error or str(self.close_code)
        return {
            "a WebSocket": socket,
            "a subscription": socket,
            "GraphQL": "4403",
            "server-sent events": "end",
            "a ticket of a WebSocket": str(self.close_code),
            "a ticket of an EventSource": str(self.status),
            "a call": str(self.status),
        }


CHANGES = {
    "issuer deleted": Change(with_token, delete_issuer),
    "issuer has another secret": Change(with_token, replace_secret),
    "issuer has another audience": Change(with_token, replace_audience),
    "key withdrawn from its set": Change(with_key_of_a_set, withdraw_key),
    "key exchanged in its set": Change(with_key_of_a_set, exchange_key),
    "token too old": Change(with_old_token, wait_for_its_age, error="token_expired"),
    "API key revoked": Change(with_token, revoke_key),
    "tenant suspended": Change(with_token, suspend_tenant, 403, 4403),
    "member removed": Change(with_membership, remove_member, 404, 4403),
    "origin removed": Change(with_token, remove_origin, 403, 4403),
}


@dataclass
class OpenConnections:
    """One of each kind, and tickets that have not been presented."""

    access: Access
    websocket: Client
    subscribed: Client
    graphql: GraphqlSocket
    events: Iterator[bytes]
    tickets: Mapping[str, JsonObject]

    def waits(self) -> dict[str, Callable[[], str]]:
        """Return the functions that wait for the end of each, and return how it ended."""
        return {
            "a WebSocket": lambda: calls_fail(self.websocket, self.access),
            "a subscription": lambda: calls_fail(self.subscribed, self.access),
            "GraphQL": lambda: str(self.graphql.closed()),
            "server-sent events": lambda: last_event(self.events),
            "a ticket of a WebSocket": lambda: present(self.access, self.tickets["socket"]),
            "a ticket of an EventSource": lambda: stream(self.access, self.tickets["events"]),
            "a call": lambda: get(self.access),
        }


@contextmanager
def connections(access: Access) -> Iterator[OpenConnections]:
    base, todos = access.todos.caller.base, access.todos
    with ExitStack() as stack:
        websocket, subscribed = (stack.enter_context(opened(base, origin=PAGE)) for _ in range(2))
        for client in (websocket, subscribed):
            client.send(type="hello", **access.credentials)
            assert client.next()["type"] == "welcome"
        assert websocket.ask("query", "q", collection=todos.name)["type"] == "ack"
        subscribe(subscribed, "s", collection=todos.name)
        graphql = stack.enter_context(graphql_socket.opened(base, {"Origin": PAGE}))
        graphql.send(type="connection_init", payload=dict(access.credentials))
        assert graphql.next() == {"type": "connection_ack"}
        graphql.subscribe("s", WATCH, c=todos.name)
        graphql.until_ready("s", "documents")
        events = stack.enter_context(
            requests.get(
                f"{base}{todos.path}/live", headers=access.headers, stream=True, timeout=60
            )
        )
        lines = events.iter_lines()
        next(line for line in lines if line == b"event: ready")
        caller = Caller(base, access.headers)
        tickets = {
            "socket": caller.post("/v1/realtime/tickets", {}).json(),
            "events": caller.post(
                "/v1/realtime/tickets", {"live": {"collection": todos.name}}
            ).json(),
        }
        yield OpenConnections(access, websocket, subscribed, graphql, lines, tickets)


def calls_fail(client: Client, access: Access) -> str:
    while True:
        try:
            answer = client.ask("query", "q", collection=access.todos.name)
        except ConnectionClosed as closed:
            return str(closed.rcvd.code if closed.rcvd else "no close frame")
        if answer["type"] == "error":
            return str(answer["error"]["code"])


def last_event(lines: Iterator[bytes]) -> str:
    kind = ""
    for line in lines:
        if line.startswith(b"event: "):
            kind = line.removeprefix(b"event: ").decode()
    return kind


def present(access: Access, ticket: JsonObject) -> str:
    with opened(access.todos.caller.base, origin=PAGE) as client:
        client.send(type="hello", token=ticket["ticket"])
        return str(client.closed()[0])


def stream(access: Access, ticket: JsonObject) -> str:
    url = f"{access.todos.caller.base}{ticket['url']}"
    with requests.get(url, headers={"Origin": PAGE}, stream=True, timeout=60) as answer:
        return str(answer.status_code)


def get(access: Access) -> str:
    path = f"{access.todos.caller.base}{access.todos.path}/documents"
    return str(requests.get(path, headers=access.headers, timeout=60).status_code)


@pytest.fixture
def jwks() -> Iterator[Receiver]:
    with receiver() as server:
        yield server


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_that_revokes_access_closes_what_it_opened(
    server: str, jwks: Receiver, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    # A key set is read every five minutes.
    monkeypatch.setattr(key_sets, "FRESH_S", 0.2)
    todos = make_collection(server, rules={"read": True})
    Tenant.objects.using("staff").filter(pk=todos.account.tenant.pk).update(cors_origins=[PAGE])
    change = CHANGES[name]
    arguments: list[Any] = [jwks] if change.access is with_key_of_a_set else []
    access = change.access(todos, *arguments)
    with connections(access) as open_connections:
        assert get(access) == "200"
        change.make(access)
        began_s, outcomes = time.monotonic(), dict[str, str]()
        for protocol, wait in open_connections.waits().items():
            outcomes[protocol] = wait()
            took_s = time.monotonic() - began_s
            assert took_s < (ENDS_WITHIN_S + TOO_OLD_IN_S if change.error else ENDS_WITHIN_S)
    assert outcomes == change.outcomes()
