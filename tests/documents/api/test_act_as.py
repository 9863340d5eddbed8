"""Testing access rules by acting as one of the tenant's end users."""

from __future__ import annotations

import json

import pytest

from foundation.scope import scoped
from tenants import keys
from tenants.models import AuditEntry, Membership, PersonalToken
from tenants.roles import Role
from tests.caller import Caller, problem, signed_in, with_key
from tests.documents.collection import CollectionClient, make_collection
from tests.make import make_member
from tests.realtime.client import Client, opened

OWN = {"owner": {"$auth": "sub"}}


def collection(server: str) -> CollectionClient:
    notes = make_collection(server, rules={"read": OWN, "create": OWN})
    notes.insert_many([{"_id": n, "owner": owner} for n, owner in enumerate(["ada", "ada", "bob"])])
    return notes


def member(notes: CollectionClient, role: Role) -> Caller:
    caller = signed_in(notes.caller.base, make_member(notes.account.tenant, role))
    caller.headers["Rillbase-Tenant"] = notes.account.slug
    return caller


def test_an_admin_who_acts_as_a_user_sees_only_what_the_user_may_read(server: str) -> None:
    notes = collection(server)
    admin = member(notes, Role.ADMIN)

    def count(**headers: str) -> int:
        answer = admin.post(f"{notes.path}/count", {}, **headers)
        assert answer.status_code == 200, answer.text
        return int(answer.json()["count"])

    assert count() == 3
    assert count(Rillbase_Act_As='{"sub": "ada"}') == 2
    assert count(Rillbase_Act_As='{"sub": "nobody"}') == 0
    nobody = admin.post(f"{notes.path}/count", {}, Rillbase_Act_As="{}")
    problem(nobody, 403, "forbidden")


def test_rules_apply_to_writes_made_as_a_user(server: str) -> None:
    notes = collection(server)
    admin = member(notes, Role.ADMIN)
    path, as_ada = f"{notes.path}/documents", '{"sub": "ada"}'
    assert admin.post(path, {"owner": "ada"}, Rillbase_Act_As=as_ada).status_code == 201
    problem(admin.post(path, {"owner": "bob"}, Rillbase_Act_As=as_ada), 403, "forbidden")


def test_each_attempt_is_in_the_audit_log(server: str) -> None:
    notes = collection(server)
    admin = member(notes, Role.ADMIN)
    admin.post(f"{notes.path}/count", {}, Rillbase_Act_As='{"sub": "ada", "team": "x"}')
    with scoped(tenant_id=notes.account.tenant.id):
        entry = AuditEntry.objects.get(action="end_user.impersonated")
    assert (entry.target_id, entry.after) == ("ada", {"sub": "ada", "team": "x"})
    assert entry.actor.startswith("user:")


def test_only_admins_may_act_as_a_user(server: str) -> None:
    notes = collection(server)
    for caller in (member(notes, Role.DEVELOPER), notes.anonymous()):
        refusal = caller.post(f"{notes.path}/count", {}, Rillbase_Act_As='{"sub": "ada"}')
        problem(refusal, 403, "forbidden")


def test_claims_are_a_json_object(server: str) -> None:
    notes = collection(server)
    admin = member(notes, Role.ADMIN)
    for text in ("", "ada", "[]", '{"a":' * 5000, '{"a": "' + "x" * 9000 + '"}'):
        refusal = admin.post(f"{notes.path}/count", {}, Rillbase_Act_As=text)
        problem(refusal, 400, "invalid_parameter")


HOSTILE = {
    "NaN": '{"sub": NaN}',
    "a number beyond all doubles": '{"exp": 1e400}',
    "a lone surrogate": '{"sub": "\\ud800"}',
    "a NUL character": '{"sub": "a\\u0000"}',
    "a name twice": '{"sub": "ada", "sub": "bob"}',
    "no UTF-8": '{"sub": "\xe9"}',
    "too deep": '{"a":' * 200 + "1" + "}" * 200,
}


@pytest.mark.parametrize("claims", HOSTILE.values(), ids=HOSTILE)
def test_every_call_parses_claims_strictly(server: str, claims: str) -> None:
    notes = collection(server)
    admin = with_key(server, notes.account.admin_key)
    for path in (f"{notes.path}/live", f"{notes.path}/documents", "/v1/whoami"):
        problem(admin.get(path, Rillbase_Act_As=claims), 400, "invalid_parameter")
    for path in (f"{notes.path}/count", "/v1/realtime/tickets"):
        problem(admin.post(path, {}, Rillbase_Act_As=claims), 400, "invalid_parameter")
    body = {"query": f'{{ count(collection: "{notes.name}") }}'}
    refusal = admin.post("/graphql", body, Rillbase_Act_As=claims).json()
    assert refusal["errors"][0]["extensions"]["code"] == "invalid_parameter"
    with opened(server, {**admin.headers, "Rillbase-Act-As": claims}) as client:
        assert client.next()["error"]["code"] == "invalid_parameter"


def test_a_long_subject_is_accepted_and_truncated_in_the_audit_log(server: str) -> None:
    notes = collection(server)
    claims = json.dumps({"sub": "x" * 300})
    answer = member(notes, Role.ADMIN).post(f"{notes.path}/count", {}, Rillbase_Act_As=claims)
    assert answer.json() == {"count": 0}
    with scoped(tenant_id=notes.account.tenant.id):
        assert AuditEntry.objects.get(action="end_user.impersonated").target_id == "x" * 80


def test_every_protocol_acts_as_the_user(server: str) -> None:
    notes = collection(server)
    admin = with_key(server, notes.account.admin_key)
    as_ada = {"Rillbase_Act_As": '{"sub": "ada"}'}
    assert admin.get("/v1/whoami", **as_ada).json()["auth"] == {"sub": "ada"}
    body = {"query": f'{{ count(collection: "{notes.name}") }}'}
    assert admin.post("/graphql", body, **as_ada).json() == {"data": {"count": 2}}
    with opened(server, {**admin.headers, "Rillbase-Act-As": '{"sub": "ada"}'}) as client:
        assert client.next()["type"] == "welcome"
        assert seen_over(client, notes) == {0, 1}


@pytest.mark.parametrize("credentials", ["key", "token", "session"])
def test_a_ticket_acts_as_the_user_for_whom_it_was_issued(server: str, credentials: str) -> None:
    notes = collection(server)
    admin = {
        "key": with_key(server, notes.account.admin_key),
        "session": member(notes, Role.ADMIN),
        "token": personal_token(notes),
    }[credentials]
    answer = admin.post("/v1/realtime/tickets", {}, Rillbase_Act_As='{"sub": "ada"}')
    assert answer.status_code == 201, answer.text
    with opened(server) as client:
        client.send(type="hello", token=answer.json()["ticket"])
        assert client.next()["type"] == "welcome"
        assert seen_over(client, notes) == {0, 1}


def test_a_ticket_and_the_header_cannot_be_combined(server: str) -> None:
    notes = collection(server)
    admin = with_key(server, notes.account.admin_key)
    ticket = admin.post("/v1/realtime/tickets", {}).json()["ticket"]
    with opened(server, {"Rillbase-Act-As": '{"sub": "ada"}'}) as client:
        client.send(type="hello", token=ticket)
        assert client.next()["error"]["code"] == "forbidden"


def test_an_admin_who_acts_as_a_user_cannot_call_the_control_plane(server: str) -> None:
    notes = collection(server)
    admin, as_ada = with_key(server, notes.account.admin_key), {"Rillbase_Act_As": '{"sub": "ada"}'}
    members = f"/api/v1/tenants/{notes.account.slug}/members"
    problem(admin.get(members, **as_ada), 403, "forbidden")
    body = {"query": f'{{ tenant(slug: "{notes.account.slug}") {{ name }} }}'}
    (error,) = admin.post("/graphql", body, **as_ada).json()["errors"]
    assert error["extensions"]["code"] == "forbidden"


def test_a_former_admin_cannot_act_as_a_user(server: str) -> None:
    notes = collection(server)
    user = make_member(notes.account.tenant, Role.ADMIN)
    admin = signed_in(notes.caller.base, user)
    admin.headers["Rillbase-Tenant"] = notes.account.slug
    ticket = admin.post("/v1/realtime/tickets", {}, Rillbase_Act_As="{}").json()["ticket"]
    with scoped(tenant_id=notes.account.tenant.id):
        Membership.objects.filter(user=user).update(role=Role.VIEWER)
    with opened(server) as client:
        client.send(type="hello", token=ticket)
        assert client.closed()[0] == 4403


def seen_over(client: Client, notes: CollectionClient) -> set[int]:
    result = client.ask("query", "q", collection=notes.name)
    return {item["id"] for item in result["items"]}


def personal_token(notes: CollectionClient) -> Caller:
    text = keys.mint(keys.Prefix.PERSONAL)
    owner = notes.account.owner
    with scoped(user_id=owner.id):
        PersonalToken.objects.create(
            user=owner, name="t", key_id=text.key_id, secret_hash=keys.stored_hash(text.text)
        )
    caller = with_key(notes.caller.base, text.text)
    caller.headers["Rillbase-Tenant"] = notes.account.slug
    return caller
