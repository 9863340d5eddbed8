"""Datasets in the console: created, uploaded to, observed through the stages, and queried."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet
import pytest

from tests.console.conftest import OpenWindow
from tests.console.looking import opened, take_pictures, violations
from tests.console.window import Window
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.analytics.dataset_client import DatasetClient
    from tests.make import TenantAccount

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

COLUMNS = {"id": "int64", "author": "string", "likes": "int64", "at": "timestamp"}
TABLES = {
    "posts": {
        "columns": COLUMNS,
        "key": ["id"],
        "views": {"by_author": {"key": ["author", "id"], "columns": ["author", "id"]}},
    }
}
ROWS = [{"id": 1, "author": "ada", "likes": 3}, {"id": 2, "author": "bob", "likes": 1}]
EDITOR = ".asking .editor-host"


@pytest.fixture
def posts(server: str) -> DatasetClient:
    """A dataset of posts."""
    from tests.analytics.dataset_client import make_dataset

    return make_dataset(server, name="posts", tables=TABLES)


@pytest.fixture
def window(open_window: OpenWindow, posts: DatasetClient) -> Window:
    return opened(open_window, posts.account)


def test_a_dataset_is_created_and_its_mistakes_are_reported(
    open_window: OpenWindow, dedicated: TenantAccount
) -> None:
    window = opened(open_window, dedicated)
    window.open("/datasets")
    window.click("button", "New dataset")
    window.click("dialog .definition-bar button", "JSON")
    table = '{"name": "posts", "tables": {"posts": {"columns": {"id": "int64"}, "key": ["%s"]}}}'
    window.write("dialog .editor-host", table % "no")
    window.click("dialog button.main", "Create dataset")
    window.shows("The column 'no' does not exist", "dialog [role=alert]")
    window.write("dialog .editor-host", table % "id")
    window.click("dialog button.main", "Create dataset")
    window.shows("No uploads yet")
    window.click("header nav a", "Tables")
    window.shows("key 1", "[aria-label='Table posts']")
    assert window.complaints == []


def test_an_uploaded_file_is_queried_and_moves_through_the_stages(
    window: Window, posts: DatasetClient, tmp_path: Path
) -> None:
    from tests.analytics.pipeline_steps import drain

    file = tmp_path / "posts.parquet"
    wrong = [{**row, "likes": "many"} for row in ROWS]
    pyarrow.parquet.write_table(pa.Table.from_pylist(wrong), file)
    window.open("/datasets/posts")
    window.click("header button", "Upload")
    window.choose_file("dialog input[type=file]", file)
    window.shows("2 of the 2 rows", "dialog [aria-label=Preview]")
    window.shows("Row 1", "dialog [aria-label=Errors]")
    window.click("dialog button.main", "Upload")
    window.shows("likes", "dialog [role=alert]")
    pyarrow.parquet.write_table(pa.Table.from_pylist(ROWS).append_column("x", [[1, 2]]), file)
    window.hand_over(file, "Upload")
    window.shows("2 rows uploaded (state 1)", "dialog [role=status]")
    window.click("dialog footer button", "Close")
    window.shows("2", "[data-stage=unsorted] .stage-rows")

    window.click("header nav a", "Query")
    window.click("[aria-label=Examples] button", "By author")
    window.click(".asking button.main", "Run")
    window.shows("2 unsorted", ".dataset-told")
    assert window.texts(".dataset-rows tbody tr") == ["ada\t1\t3", "bob\t1\t1"]
    window.page.call(
        "Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path / "out")
    )
    window.click("button[title='Export the result']")
    window.click("[role=menuitem]", "CSV")
    window.shows("posts-posts.csv exported", ".toast")
    saved = tmp_path / "out" / "posts-posts.csv"
    wait_until(lambda: saved.exists() and saved.stat().st_size > 0, what="the file to be saved")
    assert [line.split(",")[0] for line in saved.read_text().splitlines()[1:]] == ["ada", "bob"]
    window.write(EDITOR, '{"columns": ["id", "nobody"]}')
    window.click(".asking button.main", "Run")
    window.shows("The column does not exist", "[role=alert]")

    window.click("header nav a", "Pipeline")
    drain(posts)
    window.shows("2", "[data-stage=authority] .stage-rows")
    window.shows("authority", "[aria-label='Newest uploads']")
    assert window.complaints == []


def test_rows_whose_keys_get_ids_are_seen_between_two_stages(
    open_window: OpenWindow, server: str
) -> None:
    from analytics.pipeline.decisions import PipelineStep
    from tests.analytics.dataset_client import make_dataset
    from tests.analytics.pipeline_steps import do
    from tests.analytics.test_id_keys import WEB

    web = make_dataset(server, **WEB)
    window = opened(open_window, web.account)
    window.open(f"/datasets/{web.name}")
    web.upload({"links": {"from": "/a", "to": "/b", "weight": 1}})
    window.shows("1", "[data-stage=unsorted] .stage-rows")
    do(web, PipelineStep.REMAP)
    window.shows("1", "[data-stage=remapped] .stage-rows")
    window.shows("remapped", "[aria-label='Newest uploads']")
    do(web, PipelineStep.SORT)
    # With the row, its two keys become rows of a separate table.
    window.shows("3", "[data-stage=sorted] .stage-rows")
    assert window.complaints == []


@pytest.mark.long
def test_a_dataset_page_is_accessible(window: Window, posts: DatasetClient, pictures: Path) -> None:
    from analytics.pipeline.decisions import PipelineStep
    from tests.analytics.pipeline_steps import do, drain

    for first in (0, 4_000, 6_000):
        rows = [{"id": first + n, "author": f"author {n % 40}", "likes": n} for n in range(2_000)]
        posts.insert("posts", *rows)
        if first == 0:
            drain(posts)
        elif first == 4_000:
            assert do(posts, PipelineStep.SORT)
    for tab, there in (("", ".stage-card"), ("/query", EDITOR), ("/tables", "h2.mono")):
        window.open(f"/datasets/posts{tab}")
        window.wait(f"document.querySelector({there!r})")
        if tab == "/query":
            window.click("[aria-label=Examples] button", "By author")
            window.click(".asking button.main", "Run")
            window.shows("author ", ".dataset-rows")
        name = f"dataset{tab.replace('/', '-')}"
        take_pictures(window, pictures, name, desk=(1280, 900), phone=(390, 1400))
        assert violations(window) == [], tab
    assert window.complaints == []
