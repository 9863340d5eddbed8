"""The console in the machine's Chromium, with real servers behind it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pytest

from tests import chromium, machine
from tests.chromium import Browser
from tests.console.looking import PICTURES_VARIABLE
from tests.console.window import Window, sign_in
from tests.realtime.live.conftest import BackgroundProcesses, running

if TYPE_CHECKING:
    from tests.documents.collection import CollectionClient
    from tests.make import TenantAccount

OpenWindow: TypeAlias = Callable[["TenantAccount"], Window]


@pytest.fixture(scope="package")
def background(server: str, valkey_url: str) -> Iterator[BackgroundProcesses]:
    with running(server, valkey_url) as background:
        yield background


@pytest.fixture(scope="package")
def shared_browser() -> Iterator[Browser]:
    with chromium.running(machine.chromium()) as browser:
        yield browser


@pytest.fixture
def browser(shared_browser: Browser) -> Iterator[Browser]:
    yield shared_browser
    shared_browser.close_pages()


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """The folder for screenshots; they are kept in RILLBASE_PICTURES if that is set."""
    folder = Path(os.environ.get(PICTURES_VARIABLE) or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture
def open_window(browser: Browser, server: str, background: BackgroundProcesses) -> OpenWindow:
    """Open windows of one session in which a tenant's owner has signed in."""
    from tests.make import make_session

    tokens: dict[str, str] = {}

    def open_one(account: TenantAccount) -> Window:
        token = tokens.setdefault(account.slug, make_session(account.owner)[0])
        return sign_in(browser.page(), server, account, token)

    return open_one


@pytest.fixture
def notes(server: str) -> CollectionClient:
    """A collection with three documents."""
    from tests.documents.collection import make_collection

    collection = make_collection(server, name="notes")
    collection.insert_many([{"_id": f"n{n}", "title": f"Note {n}", "rank": n} for n in range(3)])
    return collection


@pytest.fixture
def dedicated(server: str) -> TenantAccount:
    """A tenant with quotas for a cluster and for datasets."""
    from tests.make import make_tenant

    return make_tenant(plan="dedicated")
