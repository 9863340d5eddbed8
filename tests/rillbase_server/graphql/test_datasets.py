"""Datasets by GraphQL."""

from __future__ import annotations

from tests.analytics.dataset_client import make_dataset
from tests.rillbase_server.graphql.graphql_caller import GraphqlCaller

ROWS = """
query ($d: String!, $q: JSON!) {
  datasetRows(dataset: $d, query: $q) { rows state freshnessS read }
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
