"""Every example of the documentation works as it is written, on a fresh tenant with the samples."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.documentation.fences import ROOT, RUN, SHOWN, examples, fences, pages
from tests.realtime.live.conftest import BackgroundProcesses, running

if TYPE_CHECKING:
    from tests.make import TenantAccount

pytestmark = pytest.mark.timeout(300)

#: What pages build on that others make.
TRAFFIC: dict[str, object] = {"name": "traffic", "kind": "geo", "retention_s": 3600}
REQUESTS: dict[str, object] = {
    "name": "requests_5m",
    "dimensions": ["customer", "app", "endpoint"],
    "time": {"field": "at", "bucket": "5m"},
    "measures": {
        "count": {"op": "count"},
        "latency": {"op": "avg", "field": "latency_ms"},
        "peak": {"op": "max", "field": "latency_ms"},
    },
    "rollups": [["customer"], ["customer", "app"]],
}
POSTS: dict[str, object] = {
    "name": "posts",
    "tables": {
        "posts": {
            "columns": {"id": "int64", "author": "string", "at": "timestamp", "text": "string"},
            "key": ["id"],
        }
    },
}
VISITS: dict[str, object] = {
    "name": "visits",
    "id_keys": {"page": "string"},
    "tables": {
        "visits": {
            "columns": {"page": "id:page", "at": "timestamp", "country": "string", "ms": "int64"},
            "key": ["page", "at"],
        },
        "pages": {"columns": {"page": "id:page", "title": "string"}, "key": ["page"]},
    },
}
PRESUPPOSED: dict[str, dict[str, dict[str, object]]] = {
    "docs/guide/aggregates.md": {"collections": {"name": "orders"}},
    "docs/guide/graphql.md": {"aggregates": REQUESTS, "topics": TRAFFIC},
    "docs/guide/sdk-js.md": {"aggregates": REQUESTS, "datasets": POSTS, "topics": TRAFFIC},
    "docs/guide/sql.md": {"datasets": VISITS},
    "docs/guide/sdk-python.md": {"aggregates": REQUESTS, "datasets": POSTS},
}

#: Pages in these folders have tests of their own.
ELSEWHERE = ("authentication", "migrate", "recipes")
#: Their examples need the server and nothing behind it.
PLAIN = ("accounts", "collections", "documents", "rest")
WITH_EXAMPLES = [page for page in pages() if page.parent.name not in ELSEWHERE and examples(page)]


@pytest.fixture(scope="module")
def background(server: str, valkey_url: str) -> Iterator[BackgroundProcesses]:
    with running(server, valkey_url) as background:
        background.start_worker()
        yield background


@pytest.fixture
def account(server: str) -> TenantAccount:
    """A tenant as a development installation has one: with the samples."""
    from documents.samples.cities import cities
    from documents.samples.people import people
    from documents.samples.products import products
    from documents.samples.todos import todos
    from tests.caller import with_key
    from tests.make import make_tenant

    account = make_tenant(plan="dedicated")
    caller = with_key(server, account.admin_key)
    for sample in (todos(), people(), cities(), products()):
        answer = caller.post(f"/api/v1/tenants/{account.slug}/collections", sample.declaration)
        assert answer.status_code == 201, answer.text
        operations = [{"insert": document} for document in sample.documents]
        path = f"/v1/collections/{sample.name}/documents:bulk"
        assert caller.post(path, {"operations": operations}).ok
    return account


def test_every_example_is_run_or_names_the_reason_why_not() -> None:
    silent = [
        fence.place
        for page in pages()
        for fence in fences(page)
        if fence.language not in SHOWN | RUN and not fence.attributes.get("not-run")
    ]
    assert silent == []


@pytest.mark.parametrize("name", PLAIN)
def test_the_examples_of_a_page_work(
    name: str, server: str, account: TenantAccount, tmp_path: Path
) -> None:
    (page,) = (page for page in WITH_EXAMPLES if page.stem == name)
    try_page(page, server, account, tmp_path)


@pytest.mark.long
@pytest.mark.usefixtures("background")
@pytest.mark.parametrize(
    "page",
    [page for page in WITH_EXAMPLES if page.stem not in PLAIN],
    ids=lambda page: page.stem,
)
def test_the_examples_of_a_page_that_watches_work(
    page: Path, server: str, account: TenantAccount, tmp_path: Path
) -> None:
    try_page(page, server, account, tmp_path)


def try_page(page: Path, server: str, account: TenantAccount, folder: Path) -> None:
    from tests.caller import with_key
    from tests.documentation.account import account_of
    from tests.documentation.reader import Reader

    caller = with_key(server, account.admin_key)
    for kind, declaration in PRESUPPOSED.get(str(page.relative_to(ROOT)), {}).items():
        answer = caller.post(f"/api/v1/tenants/{account.slug}/{kind}", declaration)
        assert answer.status_code == 201, answer.text
    Reader(server, account_of(server, account), folder).try_all(examples(page))
