"""The control plane by fields: as the REST API, in one operation."""

from __future__ import annotations

import json

from tenants.roles import Role
from tests.caller import signed_in, with_key
from tests.make import make_member, make_tenant
from tests.rillbase_server.graphql.graphql_caller import GraphqlCaller
from tests.waiting import wait_until

REMOVE_SAVED = """mutation ($t: String!, $id: ID!) {
  deleteSavedQuery(tenant: $t, savedQuery: $id)
}"""


def test_a_member_sees_its_tenants_and_their_objects(server: str) -> None:
    account = make_tenant()
    graphql = GraphqlCaller(signed_in(server, account.owner))
    data = graphql.ask(
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
        slug=account.slug,
    )
    assert data["viewer"] == {"email": account.owner.email}
    assert data["tenants"]["nodes"] == [{"slug": account.slug}]
    tenant = data["tenant"]
    assert tenant["members"]["nodes"] == [{"email": account.owner.email, "role": "owner"}]
    assert tenant["quota"]["plan"] == "standard"
    assert tenant["quota"]["limits"]["collections"] > 0


def test_an_admin_key_creates_changes_and_removes_objects_of_a_tenant(server: str) -> None:
    account = make_tenant()
    graphql = GraphqlCaller(with_key(server, account.admin_key))
    data = graphql.ask(
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
        t=account.slug,
        rules={"owner": {"$auth": "sub"}},
    )
    assert data["createCollection"]["access_rules"] == {"read": {"owner": {"$auth": "sub"}}}
    key = data["createApiKey"]
    assert with_key(server, key["secret"]).get("/v1/whoami").json()["scopes"] == key["scopes"]
    gone = graphql.ask(
        """mutation ($t: String!, $k: ID!) {
             deleteApiKey(tenant: $t, apiKey: $k)
             deleteCollection(tenant: $t, collection: "todos")
           }""",
        t=account.slug,
        k=key["id"],
    )
    assert gone == {"deleteApiKey": True, "deleteCollection": True}
    revoked = with_key(server, key["secret"])
    wait_until(lambda: revoked.get("/v1/whoami").status_code == 401, what="the key to be refused")


def test_topics_aggregates_and_datasets_are_created_read_changed_and_removed(server: str) -> None:
    account = make_tenant(plan="dedicated")
    graphql = GraphqlCaller(with_key(server, account.admin_key))
    graphql.ask(
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
        t=account.slug,
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
    tenant = graphql.ask(read, t=account.slug)["tenant"]
    assert tenant["topic"] == {"kind": "geo", "retention_s": 120, "version": 2}
    assert [item["name"] for item in tenant["aggregates"]["nodes"]] == ["visits"]
    assert [item["name"] for item in tenant["datasets"]["nodes"]] == ["posts"]
    assert tenant["cluster"]["launcher"] == "shared"
    late = """mutation ($t: String!) {
      deleteTopic(tenant: $t, topic: "traffic", ifVersion: 1)
    }"""
    assert graphql.refused(late, t=account.slug)["extensions"]["status"] == 412
    assert graphql.ask(late.replace("1)", "2)"), t=account.slug) == {"deleteTopic": True}
    assert graphql.refused(read, t=account.slug)["path"] == ["tenant", "topic"]


def test_saved_queries_are_created_listed_renamed_and_deleted(server: str) -> None:
    account = make_tenant()
    graphql = GraphqlCaller(with_key(server, account.admin_key))
    query = {"filter": {"b": 1, "a": {"z": 1, "y": 2}}, "sort": [["rank", -1]]}
    created = graphql.ask(
        """mutation ($t: String!, $q: JSON!) {
             createSavedQuery(tenant: $t, input: {
               name: "Open", kind: collection, source: "todos", query: $q,
               chart: {type: "bar", x: "owner"}, pin: 0
             }) { id name kind query chart pin }
           }""",
        t=account.slug,
        q=query,
    )["createSavedQuery"]
    assert json.dumps(created["query"]) == json.dumps(query)
    assert created["chart"] == {"type": "bar", "x": "owner"}
    renamed = graphql.ask(
        """mutation ($t: String!, $id: ID!) {
             updateSavedQuery(tenant: $t, savedQuery: $id, input: {name: "Mine"}, ifVersion: 1) {
               name pin
             }
           }""",
        t=account.slug,
        id=created["id"],
    )
    assert renamed["updateSavedQuery"] == {"name": "Mine", "pin": 0}
    read = """query ($t: String!, $id: ID!) {
      tenant(slug: $t) {
        savedQueries(first: 5) { nodes { name source } pageInfo { hasNextPage } }
        savedQuery(id: $id) { name }
      }
    }"""
    tenant = graphql.ask(read, t=account.slug, id=created["id"])["tenant"]
    assert tenant["savedQueries"]["nodes"] == [{"name": "Mine", "source": "todos"}]
    assert tenant["savedQuery"] == {"name": "Mine"}
    assert graphql.ask(REMOVE_SAVED, t=account.slug, id=created["id"]) == {"deleteSavedQuery": True}
    assert graphql.refused(read, t=account.slug, id=created["id"])["path"] == [
        "tenant",
        "savedQuery",
    ]


def test_a_saved_query_needs_the_role_that_rest_requires(server: str) -> None:
    account, strange = make_tenant(), make_tenant()
    viewer, developer = (
        make_member(account.tenant, role) for role in (Role.VIEWER, Role.DEVELOPER)
    )
    create = """mutation ($t: String!) {
      createSavedQuery(
        tenant: $t, input: {name: "Open", kind: collection, source: "todos", query: {}}
      ) { id }
    }"""
    read = "query ($t: String!) { tenant(slug: $t) { savedQueries { nodes { name } } } }"
    watching = GraphqlCaller(signed_in(server, viewer))
    assert watching.refused(create, t=account.slug)["extensions"]["code"] == "forbidden"
    working = GraphqlCaller(signed_in(server, developer))
    saved = working.ask(create, t=account.slug)["createSavedQuery"]["id"]
    assert working.refused(create, t=account.slug)["extensions"]["code"] == "name_taken"
    assert watching.ask(read, t=account.slug)["tenant"]["savedQueries"]["nodes"] == [
        {"name": "Open"}
    ]
    outside = GraphqlCaller(with_key(server, strange.admin_key))
    assert outside.refused(create, t=account.slug)["extensions"]["code"] == "not_found"
    assert (
        outside.refused(REMOVE_SAVED, t=strange.slug, id=saved)["extensions"]["code"] == "not_found"
    )
    assert (
        watching.refused(REMOVE_SAVED, t=account.slug, id=saved)["extensions"]["code"]
        == "forbidden"
    )


def test_a_tenant_is_changed_deleted_and_restored_by_its_owner(server: str) -> None:
    account = make_tenant()
    graphql = GraphqlCaller(signed_in(server, account.owner))
    data = graphql.ask(
        """mutation ($t: String!) {
             updateTenant(tenant: $t, input: {name: "Corner shop"}) { name }
             deleteTenant(tenant: $t)
             restoreTenant(tenant: $t) { slug state }
           }""",
        t=account.slug,
    )
    assert data["updateTenant"] == {"name": "Corner shop"}
    assert data["restoreTenant"] == {"slug": account.slug, "state": "active"}


def test_rejections_of_the_control_plane_have_their_code(server: str) -> None:
    account, strange = make_tenant(), make_tenant()
    graphql = GraphqlCaller(signed_in(server, account.owner))
    text = "query ($s: String!) { tenant(slug: $s) { name } }"
    assert graphql.refused(text, s=strange.slug)["extensions"]["code"] == "not_found"
    wrong = graphql.refused(
        """mutation ($t: String!) {
             createCollection(tenant: $t, input: {name: "Not A Name"}) { name }
           }""",
        t=account.slug,
    )
    assert wrong["extensions"]["code"] == "invalid_body"
    assert wrong["extensions"]["errors"][0]["pointer"] == "/name"


def test_a_cookie_alone_changes_nothing(server: str) -> None:
    account = make_tenant()
    caller = signed_in(server, account.owner)
    without = {name: text for name, text in caller.headers.items() if name == "Cookie"}
    caller.headers.clear()
    caller.headers.update(without)
    answer = GraphqlCaller(caller).send('mutation { createTenant(input: {slug: "x"}) { slug } }')
    assert answer.status_code == 403
