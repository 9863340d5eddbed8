"""A browser, and a worker beside the server for what happens after its answers.

Imports that need Django wait until the fixtures run: pytest reads this file before it is set up.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.browser import Browser


@pytest.fixture(scope="session")
def worker() -> Iterator[None]:
    """A Celery worker in a thread of this process. It sends mails and leaves other tasks alone."""
    from celery.contrib.testing.worker import start_worker

    import foundation.tasks.lost  # noqa: F401 -- a worker counts lost tasks from its start
    import tenants.mail.tasks  # noqa: F401 -- importing registers tasks
    from foundation.tasks.app import app

    # At its default level the worker would silence the whole process, this and later tests.
    options = {"queues": ["mail"], "loglevel": "INFO"}
    with start_worker(app, pool="solo", perform_ping_check=False, shutdown_timeout=30, **options):
        yield


@pytest.fixture
def browser(server: str) -> Browser:
    """A browser in which nobody has signed in."""
    from tests.browser import Browser

    return Browser(server)
