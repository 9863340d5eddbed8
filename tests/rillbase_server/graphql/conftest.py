"""Collections with and without a schema, and who asks for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.documents.collection import MadeCollection
    from tests.rillbase_server.graphql.asking import Asking


@pytest.fixture
def things(server: str) -> MadeCollection:
    """A collection whose documents may be anything."""
    from tests.documents.collection import make_collection

    return make_collection(server)


@pytest.fixture
def asking(things: MadeCollection) -> Asking:
    """The secret key of the collection's tenant."""
    from tests.rillbase_server.graphql.asking import Asking

    return Asking(things.caller)


@pytest.fixture(scope="module")
def live(server: str, valkey_url: str) -> Iterator[None]:
    """A relay and a grid behind the server."""
    from tests.realtime.live.conftest import running

    with running(server, valkey_url):
        yield
