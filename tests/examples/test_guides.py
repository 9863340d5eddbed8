"""The recipes and the migration guides: their programs run and print what the pages show."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.caller import with_key
from tests.documentation.account import Account, account_of_installation
from tests.documentation.fences import DOCS, examples
from tests.documentation.issuer import LocalIssuer, local_issuer
from tests.documentation.reader import Reader
from tests.launcher_command import reachable_directory

pytestmark = [pytest.mark.examples, pytest.mark.timeout(300)]

FOLDERS = ("recipes", "migrate")
PAGES = sorted(page for folder in FOLDERS for page in (DOCS / "guide" / folder).glob("*.md"))
#: The issuer of the users of all recipes, as a page about custom tokens registers it.
REGISTRATION = {
    "name": "my-server",
    "issuer": "https://app.example.com",
    "audience": "rillbase",
    "algorithms": ["HS256"],
    "secret": "a shared secret of at least thirty-two bytes",
}


@pytest.fixture(scope="module")
def account(installation: dict[str, str]) -> Account:
    return account_of_installation(installation["RILLBASE_URL"], installation["RILLBASE_KEY"])


@pytest.fixture(scope="module")
def registered(account: Account, installation: dict[str, str]) -> None:
    """The tenant trusts the issuer."""
    admin = with_key(installation["RILLBASE_URL"], account.admin_key)
    answer = admin.post(f"/api/v1/tenants/{account.slug}/issuers", REGISTRATION)
    assert answer.status_code == 201, answer.text


@pytest.fixture
def issuer(registered: None) -> Iterator[LocalIssuer]:
    with local_issuer() as issuer:
        issuer.adopt(dict(REGISTRATION))
        yield issuer


@pytest.fixture
def database() -> Iterator[str]:
    """The URL of a database of the reader's own."""
    from tests.sources.upstream import database, running_server

    with (
        reachable_directory() as directory,
        running_server(directory) as server,
        database(server) as database_server,
    ):
        yield database_server.url


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_the_programs_of_a_page_print_the_output_that_it_shows(
    page: Path,
    installation: dict[str, str],
    account: Account,
    issuer: LocalIssuer,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    parts = examples(page)
    assert any(part.attributes.get("is") == "output" for part in parts)
    needs_database = any(part.language == "sql" for part in parts)
    database = request.getfixturevalue("database") if needs_database else ""
    Reader(installation["RILLBASE_URL"], account, tmp_path, issuer, database).try_all(parts)
