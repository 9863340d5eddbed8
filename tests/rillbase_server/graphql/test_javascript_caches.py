"""Apollo Client and urql, with their normalised caches, as JavaScript programs use them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.sdk.driver import program
from tests.sdk.javascript import compiled
from tests.sdk.proxy import through_proxy

if TYPE_CHECKING:
    from tests.documents.collection import CollectionClient

pytestmark = [pytest.mark.timeout(300), pytest.mark.usefixtures("live")]


@pytest.mark.parametrize("client", ["apollo", "urql"])
def test_a_mutation_updates_the_cache_and_a_subscription_resumes(
    server: str, things: CollectionClient, client: str
) -> None:
    key = things.caller.headers["Authorization"].removeprefix("Bearer ")
    things.insert_many([{"_id": "a", "n": 1}, {"_id": "b", "n": 2}])
    with through_proxy(server) as network:
        script = compiled() / "test" / "graphql-cache.js"
        url = f"{network.url}/graphql"
        argv = ["node", "--experimental-websocket", str(script), client, url, key, things.name]
        with program(argv) as running:

            def holds(documents: list[dict[str, Any]]) -> int:
                frame = running.reports.wait_for("rows", lambda r: r["documents"] == documents)
                return int(frame["answers"])

            def page(documents: list[dict[str, Any]]) -> int:
                frame = running.reports.wait_for("page", lambda r: r["documents"] == documents)
                return int(frame["calls"])

            assert page([{"_id": "a", "n": 1}, {"_id": "b", "n": 2}]) == 1
            holds([{"_id": "a", "n": 1}, {"_id": "b", "n": 2}])
            running.send("change", "b", n=7)
            # The page was not asked for again: the mutation's answer has the document's global id.
            assert page([{"_id": "a", "n": 1}, {"_id": "b", "n": 7}]) == 2
            assert holds([{"_id": "a", "n": 1}, {"_id": "b", "n": 7}]) == 1

            network.cut()
            things.insert({"_id": "c", "n": 3})
            # What was missed is delivered; the answer is not sent a second time.
            expected = [{"_id": "a", "n": 1}, {"_id": "c", "n": 3}, {"_id": "b", "n": 7}]
            assert holds(expected) == 1
            assert running.reports.of("lost")
