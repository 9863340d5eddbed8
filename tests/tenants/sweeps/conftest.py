from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest


@pytest.fixture
def as_owner(postgres_url: str) -> Callable[..., None]:
    """Run a statement that no role of the application may run, for example to change times."""

    def run(statement: str, *values: object) -> None:
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            assert connection.execute(statement, values).rowcount == 1

    return run
