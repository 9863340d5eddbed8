"""The console in the machine's Chromium, with real servers behind it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pytest

from tests import chromium
from tests.chromium import Browser
from tests.console.window import Window, sign_in
from tests.realtime.live.conftest import Backstage, running

if TYPE_CHECKING:
    from tests.documents.collection import MadeCollection
    from tests.make import MadeTenant

PROGRAM = chromium.found()

OpenWindow: TypeAlias = Callable[["MadeTenant"], Window]


@pytest.fixture(scope="package")
def backstage(server: str, valkey_url: str) -> Iterator[Backstage]:
    with running(server, valkey_url) as backstage:
        yield backstage


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    if PROGRAM is None:
        pytest.skip("this machine has no Chromium")
    with chromium.running(PROGRAM) as browser:
        yield browser


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """The folder for screenshots; they are kept in RILLBASE_PICTURES if that is set."""
    folder = Path(os.environ.get("RILLBASE_PICTURES") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture
def open_window(browser: Browser, server: str, backstage: Backstage) -> OpenWindow:
    """Open windows of one session in which a tenant's owner has signed in."""
    from tests.make import make_session

    tokens: dict[str, str] = {}

    def open_one(made: MadeTenant) -> Window:
        token = tokens.setdefault(made.slug, make_session(made.owner)[0])
        return sign_in(browser.page(), server, made, token)

    return open_one


@pytest.fixture
def notes(server: str) -> MadeCollection:
    """A collection with three documents."""
    from tests.documents.collection import make_collection

    made = make_collection(server, name="notes")
    made.insert_many([{"_id": f"n{n}", "title": f"Note {n}", "rank": n} for n in range(3)])
    return made


@pytest.fixture
def dedicated(server: str) -> MadeTenant:
    """A tenant that may have a cluster, and datasets."""
    from tests.make import make_tenant

    return make_tenant(plan="dedicated")
