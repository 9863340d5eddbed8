"""Datasets by GraphQL."""

from __future__ import annotations

from tests.analytics.dataset_client import make_dataset
from tests.rillbase_server.graphql.graphql_caller import GraphqlCaller

ROWS = """
query ($d: String!, $q: JSON!) {
  datasetRows(dataset: $d, query: $q) { rows state freshnessS read }
}
"""
SQL = """
query ($d: String!, $s: JSON!) {
  datasetSql(dataset: $d, statement: $s) {
    rows columns { name type } state freshnessS engine truncated
  }
}
"""
BY_CUSTOMER = {
    "table": "orders",
    "group_by": ["customer"],
    "aggregates": {"orders": {"op": "count"}},
    "order": [["customer", 1]],
    "freshness": 0,
}


def test_rows_are_queried_at_a_freshness(server: str) -> None:
    shop = make_dataset(server)
    shop.insert("orders", *({"id": n, "customer": "ab"[n % 2]} for n in range(5)))
    graphql = GraphqlCaller(shop.caller)
    data = graphql.ask(ROWS, d=shop.name, q=BY_CUSTOMER)["datasetRows"]
    assert data["rows"] == [{"customer": "a", "orders": 3}, {"customer": "b", "orders": 2}]
    assert data["state"] == 1
    wrong = graphql.refused(ROWS, d=shop.name, q={**BY_CUSTOMER, "table": "none"})
    assert wrong["extensions"]["code"] == "invalid_body"
    assert graphql.refused(ROWS, d="nowhere", q=BY_CUSTOMER)["extensions"]["code"] == "not_found"


def test_a_statement_is_executed(server: str) -> None:
    shop = make_dataset(server)
    shop.insert("orders", *({"id": n, "customer": "ab"[n % 2]} for n in range(5)))
    graphql = GraphqlCaller(shop.caller)
    text = "SELECT customer, count(*) AS n FROM orders WHERE id >= $1 GROUP BY 1 ORDER BY 1"
    data = graphql.ask(SQL, d=shop.name, s={"sql": text, "parameters": [1], "limit": 1})
    assert data["datasetSql"] == {
        "rows": [{"customer": "a", "n": 2}],
        "columns": [{"name": "customer", "type": "VARCHAR"}, {"name": "n", "type": "BIGINT"}],
        "state": 1,
        "freshnessS": 0.0,
        "engine": "duckdb",
        "truncated": True,
    }
    for statement, code in (
        ({"sql": "SELECT nothing FROM orders"}, "invalid_sql"),
        ({"sql": "SELECT 1", "format": "csv"}, "invalid_body"),
        (
            {"sql": "SELECT count(*) FROM range(1e15::BIGINT)", "timeout": 0.5},
            "query_too_expensive",
        ),
    ):
        wrong = graphql.refused(SQL, d=shop.name, s=statement)
        assert wrong["extensions"]["code"] == code
