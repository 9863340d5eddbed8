"""A live query through the client that JavaScript programs use for GraphQL: graphql-ws."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.sdk.driver import Program, program
from tests.sdk.javascript import compiled
from tests.sdk.proxy import through_proxy

if TYPE_CHECKING:
    from tests.documents.collection import CollectionClient

pytestmark = [pytest.mark.timeout(300), pytest.mark.usefixtures("live")]


def shows(client: Program, documents: list[dict[str, Any]]) -> int:
    """Wait until the client holds these documents; return how often it was given the answer."""
    report = client.reports.wait_for("rows", lambda r: r["documents"] == documents)
    return int(report["answers"])


def test_graphql_ws_keeps_the_answer_and_resumes_after_a_disconnect(
    server: str, things: CollectionClient
) -> None:
    key = things.caller.headers["Authorization"].removeprefix("Bearer ")
    things.insert_many([{"_id": "b", "n": 2}, {"_id": "c", "n": 3}])
    with through_proxy(server) as network:
        url = f"{network.url.replace('http', 'ws')}/graphql"
        script = compiled() / "test" / "graphql.js"
        # Node.js 20 has a WebSocket, behind this switch; later ones have it without.
        argv = ["node", "--experimental-websocket", str(script), url, key, things.name]
        with program(argv) as client:
            shows(client, [{"_id": "b", "n": 2}, {"_id": "c", "n": 3}])
            things.insert({"_id": "a", "n": 1})
            things.caller.delete(f"{things.path}/documents/c")
            assert shows(client, [{"_id": "a", "n": 1}, {"_id": "b", "n": 2}]) == 1

            network.cut()
            things.insert({"_id": "d", "n": 0})
            # What was missed is delivered; the answer is not sent a second time.
            expected = [{"_id": "d", "n": 0}, {"_id": "a", "n": 1}, {"_id": "b", "n": 2}]
            assert shows(client, expected) == 1
            assert client.reports.of("lost")
