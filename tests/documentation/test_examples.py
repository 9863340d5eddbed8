"""Every example of the documentation works as it is written, on a fresh tenant with the samples."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.documentation.fences import ROOT, RUN, SHOWN, examples, fences, pages
from tests.realtime.live.conftest import Backstage, running

if TYPE_CHECKING:
    from tests.make import MadeTenant

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
PRESUPPOSED: dict[str, dict[str, dict[str, object]]] = {
    "docs/guide/aggregates.md": {"collections": {"name": "orders"}},
    "docs/guide/graphql.md": {"aggregates": REQUESTS, "topics": TRAFFIC},
    "docs/guide/sdk-js.md": {"aggregates": REQUESTS, "datasets": POSTS},
    "docs/guide/sdk-python.md": {"aggregates": REQUESTS, "datasets": POSTS},
}

#: Their examples need the server and nothing behind it.
PLAIN = ("accounts", "collections", "documents", "rest")
WITH_EXAMPLES = [page for page in pages() if examples(page)]


@pytest.fixture(scope="module")
def backstage(server: str, valkey_url: str) -> Iterator[Backstage]:
    with running(server, valkey_url) as backstage:
        backstage.start_worker()
        yield backstage


@pytest.fixture
def made(server: str) -> MadeTenant:
    """A tenant as a development installation has one: with the samples."""
    from documents.samples.cities import cities
    from documents.samples.people import people
    from documents.samples.products import products
    from documents.samples.todos import todos
    from tests.caller import with_key
    from tests.make import make_tenant

    made = make_tenant(plan="dedicated")
    caller = with_key(server, made.admin_key)
    for sample in (todos(), people(), cities(), products()):
        answer = caller.post(f"/api/v1/tenants/{made.slug}/collections", sample.declaration)
        assert answer.status_code == 201, answer.text
        operations = [{"insert": document} for document in sample.documents]
        path = f"/v1/collections/{sample.name}/documents:bulk"
        assert caller.post(path, {"operations": operations}).ok
    return made


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
    name: str, server: str, made: MadeTenant, tmp_path: Path
) -> None:
    (page,) = (page for page in WITH_EXAMPLES if page.stem == name)
    try_page(page, server, made, tmp_path)


@pytest.mark.long
@pytest.mark.usefixtures("backstage")
@pytest.mark.parametrize(
    "page",
    [page for page in WITH_EXAMPLES if page.stem not in PLAIN],
    ids=lambda page: page.stem,
)
def test_the_examples_of_a_page_that_watches_work(
    page: Path, server: str, made: MadeTenant, tmp_path: Path
) -> None:
    try_page(page, server, made, tmp_path)


def try_page(page: Path, server: str, made: MadeTenant, folder: Path) -> None:
    from tests.caller import with_key
    from tests.documentation.reader import Reader

    caller = with_key(server, made.admin_key)
    for kind, declaration in PRESUPPOSED.get(str(page.relative_to(ROOT)), {}).items():
        answer = caller.post(f"/api/v1/tenants/{made.slug}/{kind}", declaration)
        assert answer.status_code == 201, answer.text
    Reader(server, made, folder).try_all(examples(page))
