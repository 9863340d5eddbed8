"""Charts, tables and lists show their values legibly, also when they are empty."""

from __future__ import annotations

from tests.console.conftest import OpenWindow
from tests.console.looking import DESK, PHONE, Size
from tests.console.window import Window
from tests.documents.collection import CollectionClient, make_collection

ROW = "[role=grid] .rows [data-key=n1]"


def background(window: Window, selector: str) -> str:
    style = f"getComputedStyle(document.querySelector({selector!r}))"
    color: str = window.evaluate(f"{style}.backgroundColor")
    return color


def point_at(window: Window, selector: str) -> None:
    box = window.evaluate(f"document.querySelector({selector!r}).getBoundingClientRect().toJSON()")
    x, y = box["x"] + 60, box["y"] + box["height"] / 2
    window.page.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    window.wait(f"document.querySelector({selector!r}).matches(':hover')")


def resize(window: Window, size: Size) -> None:
    width, height = size
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    window.page.call("Emulation.setDeviceMetricsOverride", **metrics)


def test_an_empty_chart_has_a_scale_and_a_span_of_time(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    window = open_window(notes.account)
    window.open("/activity")
    window.shows("From commit to client", "figure")
    window.shows("no data yet", "figure .scale")
    window.shows("0 ms", "figure .scale")
    window.shows("5 minutes ago", "figure .span-of-time")


def test_a_selected_row_looks_selected_under_the_pointer(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    window = open_window(notes.account)
    window.open(f"/collections/{notes.name}")
    window.is_live()
    window.click(f"{ROW} input[type=checkbox]")
    window.wait(f"document.querySelector('{ROW}[aria-selected=true]')")
    selected = background(window, ROW)
    point_at(window, ROW)
    assert background(window, ROW) == selected
    assert background(window, "[role=grid] .rows [data-key=n2]") != selected


def test_the_empty_state_of_a_collection_is_centred(
    open_window: OpenWindow, notes: CollectionClient, server: str
) -> None:
    empty = make_collection(server, account=notes.account, name="blank")
    window = open_window(notes.account)
    window.open(f"/collections/{empty.name}")
    window.shows("No documents yet", ".empty")
    centre = "(({left, right}) => (left + right) / 2)"
    middle = f"{centre}(document.querySelector('.empty').getBoundingClientRect())"
    around = f"{centre}(document.querySelector('.empty').parentElement.getBoundingClientRect())"
    assert abs(window.evaluate(middle) - window.evaluate(around)) < 2
    bottom = "getBoundingClientRect().bottom"
    assert window.evaluate(f"innerHeight - document.querySelector('.grid-foot').{bottom}") < 2


def test_cells_and_titles_show_values_without_type_markers(
    open_window: OpenWindow, notes: CollectionClient, server: str
) -> None:
    places = make_collection(server, account=notes.account, name="places")
    oid = "64b7f0c2a1b2c3d4e5f60718"
    places.insert(
        {
            "_id": {"$oid": oid},
            "at": {"type": "Point", "coordinates": [16.37, 48.21]},
            "seen": {"last": {"$date": "2026-11-21T00:00:00Z"}, "by": {"$oid": oid}},
            "tags": ["home", "work"],
            "none": {},
        }
    )
    window = open_window(notes.account)
    window.open(f"/collections/{places.name}")
    window.shows("1 document", "[data-testid=count]")
    assert "1 documents" not in window.evaluate("document.body.innerText")
    cell = ".rows [role=gridcell]"
    for text in ("Point 16.37, 48.21", "2026-11-21", "home"):
        window.shows(text, f"{cell} .member")
    assert not any("$" in text for text in window.texts(cell))
    window.click(cell, oid)
    window.wait("document.querySelector('.panel header strong')")
    assert window.texts(".panel header strong") == [oid]


def test_a_list_on_a_phone_is_cards_with_labels_and_never_scrolls_sideways(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    window = open_window(notes.account)
    resize(window, PHONE)
    window.open("/keys")
    window.wait("document.querySelector('td .badge')")
    label = "getComputedStyle(document.querySelector('td:nth-child({})'), '::before').content"
    assert window.evaluate(label.format(2)) == '"Kind"'
    assert window.evaluate(label.format(4)) == '"Scopes"'
    frame = "document.querySelector('.table-wrap')"
    assert window.evaluate(f"{frame}.scrollWidth <= {frame}.clientWidth")


def test_activity_shows_the_last_hour_at_once(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    window = open_window(notes.account)
    window.open("/activity")
    window.shows("Documents written each minute", "figure")
    window.shows("60 minutes ago", "figure .span-of-time")


def test_the_playground_of_a_tenant_without_collections_says_what_to_do(
    open_window: OpenWindow,
) -> None:
    from tests.make import make_tenant

    window = open_window(make_tenant())
    resize(window, DESK)
    window.open("/playground")
    window.shows("No collections yet", ".empty")
    window.shows("No collections yet", ".side")
    window.click(".empty a", "Get started")
    window.shows("Set up the example")


def test_activity_lists_the_latest_requests_and_says_what_to_do_when_it_is_quiet(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    from tests.make import make_tenant

    window = open_window(notes.account)
    window.open("/activity")
    window.shows(f"/v1/collections/{notes.name}", "table")
    window.click("a", "All requests")
    window.wait("location.pathname.endsWith('/requests')")

    quiet = open_window(make_tenant())
    quiet.open("/activity")
    quiet.shows("Nothing was written or sent in the last hour.", ".quiet")
    quiet.click(".quiet a", "Open the playground")
    quiet.wait("location.pathname.endsWith('/playground')")


def test_the_open_page_is_in_view_in_a_long_sidebar(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    window = open_window(notes.account)
    resize(window, (1280, 520))
    window.open("/settings")
    link = "document.querySelector('.side nav [aria-current=page]')"
    window.wait(link)
    window.shows("notes", ".side nav")
    bottom = "getBoundingClientRect().bottom"
    window.wait(f"{link}.{bottom} <= document.querySelector('.side nav').{bottom}")


def test_all_pages_are_in_view_beside_a_few_collections(
    open_window: OpenWindow, notes: CollectionClient, server: str
) -> None:
    for name in ("orders", "places"):
        make_collection(server, account=notes.account, name=name)
    window = open_window(notes.account)
    resize(window, (1920, 900))
    window.open("/audit")
    window.shows("places", ".side nav")
    pages = "document.querySelector('.side nav')"
    assert window.evaluate(f"{pages}.scrollHeight <= {pages}.clientHeight")
    page_end = "document.querySelector('.column')?.getBoundingClientRect().right"
    window.wait(f"innerWidth - {page_end} < 50")


def test_headings_of_numbers_are_above_them(
    open_window: OpenWindow, notes: CollectionClient, server: str
) -> None:
    from tests.storage_engine.topics.topic_client import make_topic

    make_topic(server, account=notes.account, name="news")
    window = open_window(notes.account)
    resize(window, DESK)
    misaligned = """[...document.querySelectorAll("tbody tr:first-child td.number")]
        .filter((cell) => getComputedStyle(cell.closest("table").tHead.rows[0]
            .cells[cell.cellIndex]).textAlign !== getComputedStyle(cell).textAlign).length"""
    for path in ("/topics", "/requests", "/keys"):
        window.open(path)
        window.wait("document.querySelector('tbody td')")
        assert window.evaluate(misaligned) == 0, path


def test_one_wrong_origin_is_one_error(open_window: OpenWindow, notes: CollectionClient) -> None:
    window = open_window(notes.account)
    window.open("/settings")
    window.type("textarea[aria-label=Origins]", "my app.example.com")
    window.click("[aria-label=Origins] button", "Save")
    reason = "An origin has the form"
    window.shows(reason, "[role=alert]")
    assert [text.count(reason) for text in window.texts("[role=alert]")] == [1]
    assert len(window.texts("[role=alert] li")) == 1
