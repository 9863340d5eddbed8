"""Trying access rules as one of the tenant's end users."""

from __future__ import annotations

from foundation.scope import scoped
from tenants.models import AuditEntry
from tenants.roles import Role
from tests.caller import Caller, problem, signed_in
from tests.documents.collection import MadeCollection, make_collection
from tests.make import make_member

OWN = {"owner": {"$auth": "sub"}}


def made(server: str) -> MadeCollection:
    notes = make_collection(server, rules={"read": OWN, "create": OWN})
    notes.insert_many([{"_id": n, "owner": owner} for n, owner in enumerate(["ada", "ada", "bob"])])
    return notes


def member(notes: MadeCollection, role: Role) -> Caller:
    caller = signed_in(notes.caller.base, make_member(notes.made.tenant, role))
    caller.headers["Rillbase-Tenant"] = notes.made.slug
    return caller


def test_an_admin_sees_what_the_rules_let_a_user_see(server: str) -> None:
    notes = made(server)
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


def test_rules_bind_writes_made_as_a_user(server: str) -> None:
    notes = made(server)
    admin = member(notes, Role.ADMIN)
    path, as_ada = f"{notes.path}/documents", '{"sub": "ada"}'
    assert admin.post(path, {"owner": "ada"}, Rillbase_Act_As=as_ada).status_code == 201
    problem(admin.post(path, {"owner": "bob"}, Rillbase_Act_As=as_ada), 403, "forbidden")


def test_each_try_is_in_the_audit_log(server: str) -> None:
    notes = made(server)
    admin = member(notes, Role.ADMIN)
    admin.post(f"{notes.path}/count", {}, Rillbase_Act_As='{"sub": "ada", "team": "x"}')
    with scoped(tenant_id=notes.made.tenant.id):
        entry = AuditEntry.objects.get(action="end_user.impersonated")
    assert (entry.target_id, entry.after) == ("ada", {"sub": "ada", "team": "x"})
    assert entry.actor.startswith("user:")


def test_only_admins_may(server: str) -> None:
    notes = made(server)
    for caller in (member(notes, Role.DEVELOPER), notes.anonymous()):
        refused = caller.post(f"{notes.path}/count", {}, Rillbase_Act_As='{"sub": "ada"}')
        problem(refused, 403, "forbidden")


def test_claims_are_a_json_object(server: str) -> None:
    notes = made(server)
    admin = member(notes, Role.ADMIN)
    for text in ("", "ada", "[]", '{"a":' * 5000, '{"a": "' + "x" * 9000 + '"}'):
        refused = admin.post(f"{notes.path}/count", {}, Rillbase_Act_As=text)
        problem(refused, 400, "invalid_parameter")
