"""The control plane by fields: as the REST API, in one operation."""

from __future__ import annotations

from tests.caller import signed_in, with_key
from tests.make import make_tenant
from tests.rillbase_server.graphql.asking import Asking
from tests.waiting import wait_until


def test_a_member_sees_its_tenants_and_their_objects(server: str) -> None:
    made = make_tenant()
    asking = Asking(signed_in(server, made.owner))
    found = asking.ask(
        """query ($slug: String!) {
             viewer { email }
             tenants { nodes { slug } }
             tenant(slug: $slug) {
               name state
               members { nodes { email role } pageInfo { hasNextPage } }
               apiKeys { nodes { name kind scopes } }
               collections { nodes { name } }
               auditLog(first: 5) { nodes { action } }
               subscriptions { nodes { id } }
               quota { plan limits }
               usage { granularity }
             }
           }""",
        slug=made.slug,
    )
    assert found["viewer"] == {"email": made.owner.email}
    assert found["tenants"]["nodes"] == [{"slug": made.slug}]
    tenant = found["tenant"]
    assert tenant["members"]["nodes"] == [{"email": made.owner.email, "role": "owner"}]
    assert tenant["quota"]["plan"] == "standard"
    assert tenant["quota"]["limits"]["collections"] > 0


def test_an_admin_key_creates_changes_and_removes_objects_of_a_tenant(server: str) -> None:
    made = make_tenant()
    asking = Asking(with_key(server, made.admin_key))
    found = asking.ask(
        """mutation ($t: String!, $rules: JSON) {
             createCollection(tenant: $t, input: {name: "todos", access_rules: {read: $rules}}) {
               name access_rules { read } version
             }
             updateCollection(tenant: $t, collection: "todos", input: {ttl: null}) { version }
             createApiKey(
               tenant: $t
               input: {name: "app", kind: secret, scopes: ["documents:read"]}
             ) { id secret scopes }
           }""",
        t=made.slug,
        rules={"owner": {"$auth": "sub"}},
    )
    assert found["createCollection"]["access_rules"] == {"read": {"owner": {"$auth": "sub"}}}
    key = found["createApiKey"]
    assert with_key(server, key["secret"]).get("/v1/whoami").json()["scopes"] == key["scopes"]
    gone = asking.ask(
        """mutation ($t: String!, $k: ID!) {
             deleteApiKey(tenant: $t, apiKey: $k)
             deleteCollection(tenant: $t, collection: "todos")
           }""",
        t=made.slug,
        k=key["id"],
    )
    assert gone == {"deleteApiKey": True, "deleteCollection": True}
    revoked = with_key(server, key["secret"])
    wait_until(lambda: revoked.get("/v1/whoami").status_code == 401, what="the key to be refused")


def test_topics_aggregates_and_datasets_are_created_read_changed_and_removed(server: str) -> None:
    made = make_tenant(plan="dedicated")
    asking = Asking(with_key(server, made.admin_key))
    asking.ask(
        """mutation ($t: String!, $measures: JSON!, $tables: JSON!) {
             createTopic(tenant: $t, input: {name: "traffic", kind: geo, retention_s: 60}) { name }
             createAggregate(
               tenant: $t, input: {name: "visits", dimensions: ["page"], measures: $measures}
             ) { name }
             createDataset(tenant: $t, input: {name: "posts", tables: $tables}) { name }
             updateTopic(tenant: $t, topic: "traffic", input: {retention_s: 120}, ifVersion: 1) {
               version
             }
           }""",
        t=made.slug,
        measures={"count": {"op": "count"}},
        tables={"posts": {"columns": {"id": "int64"}, "key": ["id"]}},
    )
    read = """query ($t: String!) {
      tenant(slug: $t) {
        topics { nodes { name } } aggregates { nodes { name } } datasets { nodes { name } }
        topic(name: "traffic") { kind retention_s version }
        cluster { launcher state grids { query_partitions } }
      }
    }"""
    tenant = asking.ask(read, t=made.slug)["tenant"]
    assert tenant["topic"] == {"kind": "geo", "retention_s": 120, "version": 2}
    assert [each["name"] for each in tenant["aggregates"]["nodes"]] == ["visits"]
    assert [each["name"] for each in tenant["datasets"]["nodes"]] == ["posts"]
    assert tenant["cluster"]["launcher"] == "shared"
    late = """mutation ($t: String!) {
      deleteTopic(tenant: $t, topic: "traffic", ifVersion: 1)
    }"""
    assert asking.refused(late, t=made.slug)["extensions"]["status"] == 412
    assert asking.ask(late.replace("1)", "2)"), t=made.slug) == {"deleteTopic": True}
    assert asking.refused(read, t=made.slug)["path"] == ["tenant", "topic"]


def test_a_tenant_is_changed_deleted_and_restored_by_its_owner(server: str) -> None:
    made = make_tenant()
    asking = Asking(signed_in(server, made.owner))
    found = asking.ask(
        """mutation ($t: String!) {
             updateTenant(tenant: $t, input: {name: "Corner shop"}) { name }
             deleteTenant(tenant: $t)
             restoreTenant(tenant: $t) { slug state }
           }""",
        t=made.slug,
    )
    assert found["updateTenant"] == {"name": "Corner shop"}
    assert found["restoreTenant"] == {"slug": made.slug, "state": "active"}


def test_rejections_of_the_control_plane_have_their_code(server: str) -> None:
    made, strange = make_tenant(), make_tenant()
    asking = Asking(signed_in(server, made.owner))
    text = "query ($s: String!) { tenant(slug: $s) { name } }"
    assert asking.refused(text, s=strange.slug)["extensions"]["code"] == "not_found"
    wrong = asking.refused(
        """mutation ($t: String!) {
             createCollection(tenant: $t, input: {name: "Not A Name"}) { name }
           }""",
        t=made.slug,
    )
    assert wrong["extensions"]["code"] == "invalid_body"
    assert wrong["extensions"]["errors"][0]["pointer"] == "/name"


def test_a_cookie_alone_changes_nothing(server: str) -> None:
    made = make_tenant()
    caller = signed_in(server, made.owner)
    without = {name: text for name, text in caller.headers.items() if name == "Cookie"}
    caller.headers.clear()
    caller.headers.update(without)
    answer = Asking(caller).send('mutation { createTenant(input: {slug: "x"}) { slug } }')
    assert answer.status_code == 403
