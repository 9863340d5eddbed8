"""Aggregates by GraphQL."""

from __future__ import annotations

import pytest

from tests.aggregates.aggregate_client import AggregateClient, make_aggregate
from tests.aggregates.test_events import request
from tests.aggregates.test_live import key_of
from tests.rillbase_server.graphql.graphql_caller import GraphqlCaller
from tests.rillbase_server.graphql.graphql_socket import greeted

ADD = """
mutation ($a: String!, $events: [JSON!]!, $key: String) {
  addEvents(aggregate: $a, events: $events, idempotencyKey: $key) { applied repeated }
}
"""
ROWS = """
query ($a: String!, $q: RowQuery, $s: String) {
  aggregateRows(aggregate: $a, query: $q, snapshot: $s) { rows snapshot asOf }
}
"""
WATCH = """
subscription ($a: String!, $q: RowQuery) {
  aggregateRows(aggregate: $a, query: $q) {
    kind rows part last seq match key row transaction { index count } state
  }
}
"""
BY_CUSTOMER = {"groupBy": ["customer"], "measures": ["count"], "from": "-1h"}


@pytest.fixture
def requests_5m(server: str) -> AggregateClient:
    return make_aggregate(server)


def test_events_are_added_and_rows_queried(requests_5m: AggregateClient) -> None:
    graphql = GraphqlCaller(requests_5m.caller)
    events = [request("acme"), request("acme")]
    answer = graphql.ask(ADD, a=requests_5m.name, events=events, key="once")
    assert answer["addEvents"] == {"applied": 2, "repeated": 0}
    assert graphql.ask(ADD, a=requests_5m.name, events=events, key="once") == answer
    data = graphql.ask(ROWS, a=requests_5m.name, q=BY_CUSTOMER, s="fresh")["aggregateRows"]
    assert data["rows"] == [{"customer": "acme", "count": 2}]
    assert data["asOf"] is None


def test_errors_have_the_codes_of_the_rest_api(requests_5m: AggregateClient) -> None:
    graphql = GraphqlCaller(requests_5m.caller)
    refusal = graphql.refused(ROWS, a=requests_5m.name, q={"groupBy": ["server"]})
    assert refusal["extensions"]["code"] == "invalid_body"
    assert graphql.refused(ROWS, a="nowhere")["extensions"]["code"] == "not_found"


def test_changed_rows_are_delivered(server: str, requests_5m: AggregateClient) -> None:
    requests_5m.add(request("acme"))
    with greeted(server, token=key_of(requests_5m)) as graphql_socket:
        graphql_socket.subscribe("s", WATCH, a=requests_5m.name, q=BY_CUSTOMER)
        (result,) = graphql_socket.until_ready("s", "aggregateRows")
        assert (result["kind"], result["part"], result["last"]) == ("RESULT", 0, True)
        assert result["rows"] == [{"customer": "acme", "count": 1}]
        requests_5m.add(request("bolt"))
        answer = graphql_socket.event("s", "aggregateRows")
        assert (answer["match"], answer["key"], answer["seq"]) == ("ADD", {"customer": "bolt"}, 1)
        assert answer["row"] == {"customer": "bolt", "count": 1}
