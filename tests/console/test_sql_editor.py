"""SQL over a dataset: typed with completion, executed, cancelled, exported and saved."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.console.conftest import OpenWindow
from tests.console.looking import PHONE, opened, take_pictures, violations
from tests.console.window import Window
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.analytics.dataset_client import DatasetClient

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

TABLES = {
    "posts": {
        "columns": {"id": "int64", "author": "string", "likes": "int64", "at": "timestamp"},
        "key": ["id"],
        "views": {"by_author": {"key": ["author", "id"], "columns": ["author", "id"]}},
    }
}
AT = "2026-11-21T16:30:00Z"
ROWS: list[dict[str, object]] = [
    {"id": 1, "author": "ada", "likes": 3, "at": AT},
    {"id": 2, "author": "", "likes": 2**60, "at": AT},
    {"id": 3, "author": None, "likes": 1, "at": AT},
]
EDITOR = ".sql-statement .editor-host"
IN_EDITOR = f"document.querySelector('{EDITOR}')?.shadowRoot"
CELLS = ".result-grid [role=gridcell]"
RUN = ".sql-actions button.main"
#: What Ctrl-C copies.
COPIED = """(() => {
  const clipboardData = new DataTransfer();
  const copy = new ClipboardEvent("copy", {clipboardData, bubbles: true, cancelable: true});
  document.querySelector(".result-grid").dispatchEvent(copy);
  return clipboardData.getData("text/plain");
})()"""
ENDLESS = "SELECT count(*) FROM range(1000000000000) a(x) WHERE x % 7 = 3"


@pytest.fixture
def posts(server: str) -> DatasetClient:
    """A dataset with three posts."""
    from tests.analytics.dataset_client import make_dataset

    posts = make_dataset(server, name="posts", tables=TABLES)
    posts.insert("posts", *ROWS)
    return posts


@pytest.fixture
def window(open_window: OpenWindow, posts: DatasetClient) -> Window:
    window = opened(open_window, posts.account)
    window.open("/datasets/posts/sql")
    window.wait(f"{IN_EDITOR}?.querySelector('.cm-content')")
    return window


def text_of(window: Window) -> str:
    lines: list[str] = window.evaluate(
        f"[...{IN_EDITOR}.querySelectorAll('.cm-line')].map((line) => line.textContent)"
    )
    return "\n".join(lines)


def run(window: Window, sql: str) -> None:
    window.write(EDITOR, sql)
    window.click(RUN, "Run")


def complete(window: Window, typed: str, label: str) -> None:
    """Type the beginning of a word, and choose a completion."""
    window.page.call("Input.insertText", text=typed)
    option = (
        f"[...{IN_EDITOR}.querySelectorAll('.cm-completionLabel')]"
        f".find((option) => option.textContent === {label!r})"
    )
    window.wait(option)
    window.evaluate(f"{option}.dispatchEvent(new MouseEvent('mousedown', {{bubbles: true}}))")
    window.wait(f"!{IN_EDITOR}.querySelector('.cm-completionLabel')")


def test_a_statement_is_completed_and_executed(window: Window) -> None:
    assert text_of(window) == (
        'SELECT author, count(*) AS "rows"\nFROM posts\nGROUP BY author\n'
        'ORDER BY "rows" DESC\nLIMIT 20'
    )
    window.write(EDITOR, "SELECT id, author, likes, ")
    complete(window, "a", "at")
    window.page.call("Input.insertText", text=" FROM ")
    complete(window, "po", "posts")
    window.page.call("Input.insertText", text=" ORDER BY id LIMIT $1")
    assert text_of(window) == ('SELECT id, author, likes, "at" FROM posts ORDER BY id LIMIT $1')
    window.type("[aria-label=Parameters] input", "3")
    window.evaluate(f"{IN_EDITOR}.querySelector('.cm-content').focus()")
    window.press("Enter", ctrl=True)
    window.shows("3 rows in", ".answer-head")
    window.shows("state 1", ".answer-head")
    assert window.texts(".result-grid [role=columnheader]") == [
        "id\nBIGINT",
        "author\nVARCHAR",
        "likes\nBIGINT",
        "at\nTIMESTAMPTZ",
    ]
    # Digits beyond 2^53 stay exact, and an empty text is not null.
    assert window.texts(CELLS) == [
        *("1", "ada", "3", "2026-11-21 16:30:00"),
        *("2", "''", str(2**60), "2026-11-21 16:30:00"),
        *("3", "null", "1", "2026-11-21 16:30:00"),
    ]
    window.click(CELLS, str(2**60))
    window.shows(str(2**60), ".result-foot output")
    assert window.evaluate(COPIED) == str(2**60)

    window.page.reload()
    window.wait(f"{IN_EDITOR}?.querySelector('.cm-content')")
    assert text_of(window).endswith("ORDER BY id LIMIT $1")
    window.click(RUN, "Run")
    window.shows("3 rows in", ".answer-head")
    window.click(".sql-actions button", "History")
    window.shows("SELECT id, author", "[role=menuitem]")
    assert window.complaints == []


def test_a_long_result_is_cut_off_and_scrolls(window: Window) -> None:
    window.select(".sql-options label:nth-child(2) select", "10000")
    run(window, "SELECT x, x * 2 AS twice FROM range(20000) r(x)")
    window.shows("10,000 rows", ".answer-head")
    window.shows("limit reached", ".answer-head")
    assert len(window.texts(".result-grid .rows [role=row]")) < 100
    window.evaluate("document.querySelector('.result-grid').scrollTop = 1e9")
    window.shows("19998", CELLS)
    window.evaluate("document.querySelector('.result-grid').focus()")
    window.press("ArrowDown")
    window.press("ArrowRight")
    window.press("ArrowDown")
    window.shows("2", ".result-foot output")
    assert window.complaints == []


def test_an_error_is_marked_where_it_is(window: Window) -> None:
    run(window, "SELECT id,\n  read_text('x')\nFROM posts")
    window.shows("The function 'read_text' is not available.", ".answer [role=alert]")
    marked = f"{IN_EDITOR}.querySelector('.cm-lintRange-error')?.textContent"
    window.wait(f"{marked} === 'read_text'")
    window.write(EDITOR, "SELECT nobody FROM posts")
    window.wait(f"{marked} === undefined")
    window.click(RUN, "Run")
    window.wait(f"{marked} === 'SELECT nobody FROM posts'")
    assert window.complaints == []


def test_cancelled_statements_end_at_the_server(window: Window) -> None:
    window.type(".sql-options input", "300")
    # More of them than a tenant may have running: a further one would wait for their timeout.
    for _ in range(4):
        run(window, ENDLESS)
        window.click(".sql-actions button", "Cancel")
        window.shows("The statement was cancelled", ".answer")
    run(window, "SELECT 1 AS one")
    window.shows("1 row in", ".answer-head")
    assert window.complaints == []


def test_a_result_is_exported_in_each_format(window: Window, tmp_path: Path) -> None:
    window.page.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    run(window, "SELECT id FROM posts WHERE id >= $first ORDER BY id")
    window.type("[aria-label=Parameters] input", "2")
    window.click(RUN, "Run")
    window.shows("2 rows in", ".answer-head")
    beginnings = {
        "CSV": b"id\n2\n3\n",
        "JSON": b'[\n{"id":2},\n{"id":3}\n]\n',
        "NDJSON": b'{"id":2}\n{"id":3}\n',
        "Parquet": b"PAR1",
        "Arrow": b"\xff\xff\xff\xff",
    }
    for title, beginning in beginnings.items():
        file = tmp_path / f"posts.{title.lower()}"
        window.click("button[title='Export the result']")
        window.evaluate(
            "[...document.querySelectorAll('[role=menuitem]')]"
            f".find((item) => item.innerText === {title!r}).click()"
        )
        wait_until(partial(_has_content, file), what=title)
        content = file.read_bytes().replace(b"\r\n", b"\n").replace(b": ", b":")
        assert content.startswith(beginning), title
    assert window.complaints == []


def _has_content(file: Path) -> bool:
    return file.exists() and file.stat().st_size > 0


def test_a_statement_is_saved_with_its_chart_and_opened(
    window: Window, posts: DatasetClient, server: str
) -> None:
    from tests.documents.collection import make_collection

    run(window, "SELECT author, sum(likes) AS likes FROM posts WHERE id < $1 GROUP BY author")
    window.type("[aria-label=Parameters] input", "2")
    window.click(RUN, "Run")
    window.shows("1 row in", ".answer-head")
    window.click(".answer-head button", "Chart")
    window.click(".chart-builder .segments button", "Number")
    window.click("[aria-label='Save query']")
    window.type("dialog input.input", "Likes")
    window.click("dialog input[type=checkbox]")
    window.click("dialog button.main", "Save")
    window.shows("Likes saved.", ".toast")

    # Without a collection, the overview shows the first steps.
    make_collection(server, account=posts.account)
    window.open("/overview")
    window.shows("3", "[data-pin=Likes] strong")
    window.click("[data-pin] a", "Likes")
    window.wait("location.pathname.endsWith('/datasets/posts/sql')")
    window.shows("3", ".answer strong")
    assert text_of(window).startswith("SELECT author, sum(likes)")
    assert window.evaluate("document.querySelector('[aria-label=Parameters] input').value") == "2"
    assert window.complaints == []


def test_the_editor_is_accessible_and_fits_a_phone(window: Window, pictures: Path) -> None:
    window.write(
        EDITOR,
        "-- The posts that are liked most.\n"
        "SELECT *, likes / 3 AS third, {'a': id, 'b': [1, 2]} AS pair\n"
        "FROM posts, range(40)\n"
        "WHERE id >= $first AND author IS DISTINCT FROM $author\n"
        "ORDER BY likes DESC",
    )
    window.type("[aria-label=Parameters] input", "1")
    window.click(RUN, "Run")
    window.shows("rows in", ".answer-head")
    window.click(CELLS, "ada")
    take_pictures(window, pictures, "sql")
    window.page.set_screen(width=PHONE[0], height=PHONE[1], dark=False)
    assert violations(window) == []
    assert window.complaints == []
