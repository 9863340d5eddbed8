"""However much an operation requests, related data is read together."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db.backends.utils import CursorWrapper

from foundation.postgres.session import PostgresSession, Step
from tests.caller import with_key
from tests.documents.collection import CollectionClient
from tests.make import make_tenant, unique
from tests.rillbase_server.graphql.graphql_caller import GraphqlCaller

Statements = list[str]
#: Names as the control plane's statements have them. What a schema is made from is looked up now
#: and then by statements that have no quotes.
LISTED = '"{}"'


@contextmanager
def watched(patch: pytest.MonkeyPatch) -> Iterator[Statements]:
    """Note the SQL that this process sends, on its way to the database."""
    seen: Statements = []
    run, execute = PostgresSession.run, CursorWrapper.execute

    async def noted_run(session: PostgresSession, steps: list[Step]) -> Any:
        seen.extend(statement.sql for statement, _ in steps)
        return await run(session, steps)

    def noted_execute(cursor: CursorWrapper, sql: str, params: Any = None) -> Any:
        seen.append(sql)
        return execute(cursor, sql, params)

    with patch.context() as patched:
        patched.setattr(PostgresSession, "run", noted_run)
        patched.setattr(CursorWrapper, "execute", noted_execute)
        yield seen


def reading(seen: Statements, table: str) -> int:
    """Return how many of the statements read a table."""
    return sum(sql.startswith("SELECT") and table in sql for sql in seen)


def by_keys(count: int) -> str:
    """Return an operation that reads a number of documents, each by a separate field."""
    fields = [f"d{n}: document(collection: $c, key: {n}) {{ key }}" for n in range(count)]
    return f"query ($c: String!) {{ {' '.join(fields)} }}"


def test_documents_of_a_collection_are_read_by_one_statement(
    graphql: GraphqlCaller, things: CollectionClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    things.insert_many([{"_id": n} for n in range(20)])
    for count in (1, 20):
        with watched(monkeypatch) as seen:
            data = graphql.ask(by_keys(count), c=things.name)
        assert [data[f"d{n}"]["key"] for n in range(count)] == list(range(count))
        assert reading(seen, "documents_document") == 1


def test_a_page_of_documents_is_read_by_one_statement_for_any_selection(
    graphql: GraphqlCaller, things: CollectionClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    things.insert_many([{"_id": n} for n in range(50)])
    text = """query ($c: String!, $first: Int) {
      documents(collection: $c, first: $first) {
        edges { cursor node { id key version document } } pageInfo { endCursor }
      }
    }"""
    for first in (1, 10):
        with watched(monkeypatch) as seen:
            data = graphql.ask(text, c=things.name, first=first)
        assert len(data["documents"]["edges"]) == first
        assert reading(seen, "documents_document") == 1


def test_lists_of_the_control_plane_take_a_constant_number_of_statements(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = make_tenant()
    graphql = GraphqlCaller(with_key(server, account.admin_key))
    text = """query ($slug: String!) { tenant(slug: $slug) { collections { nodes { name } } } }"""
    make = """mutation ($t: String!, $name: String!) {
      createCollection(tenant: $t, input: {name: $name}) { name }
    }"""
    counts = []
    for more in (1, 6):
        for _ in range(more):
            graphql.ask(make, t=account.slug, name=unique("things"))
        graphql.ask(text, slug=account.slug)
        with watched(monkeypatch) as seen:
            graphql.ask(text, slug=account.slug)
        counts.append(reading(seen, LISTED.format("documents_collection")))
    assert counts[0] == counts[1] > 0


def test_equal_fields_share_one_call(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    account = make_tenant()
    graphql = GraphqlCaller(with_key(server, account.admin_key))
    fields = "name topics { nodes { name } } quota { plan }"
    once = f"query ($s: String!) {{ tenant(slug: $s) {{ {fields} }} }}"
    thrice = (
        f"query ($s: String!) {{ a: tenant(slug: $s) {{ {fields} }}"
        f" b: tenant(slug: $s) {{ {fields} }} c: tenant(slug: $s) {{ {fields} }} }}"
    )
    counts = []
    for text in (once, once, thrice):
        with watched(monkeypatch) as seen:
            graphql.ask(text, s=account.slug)
        counts.append(reading(seen, LISTED.format("storage_engine_topic")))
    assert counts == [counts[0]] * 3
    assert counts[0] > 0
