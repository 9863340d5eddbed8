"""Collections with and without a schema, and their callers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.documents.collection import CollectionClient
    from tests.rillbase_server.graphql.graphql_caller import GraphqlCaller


@pytest.fixture
def things(server: str) -> CollectionClient:
    """A collection whose documents may be anything."""
    from tests.documents.collection import make_collection

    return make_collection(server)


@pytest.fixture
def graphql(things: CollectionClient) -> GraphqlCaller:
    """The secret key of the collection's tenant."""
    from tests.rillbase_server.graphql.graphql_caller import GraphqlCaller

    return GraphqlCaller(things.caller)


@pytest.fixture(scope="package")
def live(server: str, valkey_url: str) -> Iterator[None]:
    """A relay and a grid behind the server."""
    from tests.realtime.live.conftest import running

    with running(server, valkey_url):
        yield
