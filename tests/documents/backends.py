"""Runs the tests of a directory for both backends, except for those that say why not.

A directory's `conftest.py` imports both names.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from documents.backend import Backend
from tests.documents.collection import default_backend


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    only = metafunc.definition.get_closest_marker("backend")
    backends = [*Backend] if only is None else [only.args[0]]
    metafunc.parametrize("backend", backends, indirect=True, ids=str, scope="module")


@pytest.fixture(scope="module", autouse=True)
def backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    """The backend of the collections that a test makes."""
    token = default_backend.set(Backend(request.param))
    yield Backend(request.param)
    default_backend.reset(token)
