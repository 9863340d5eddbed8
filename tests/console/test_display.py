"""Charts, tables and lists show their values legibly, also when they are empty."""

from __future__ import annotations

from tests.console.conftest import OpenWindow
from tests.console.window import Window
from tests.documents.collection import MadeCollection, make_collection

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


def test_an_empty_chart_has_a_scale_and_a_span_of_time(
    open_window: OpenWindow, notes: MadeCollection
) -> None:
    window = open_window(notes.made)
    window.open("/activity")
    window.sees("From commit to client", "figure")
    window.sees("no data yet", "figure .scale")
    window.sees("0 ms", "figure .scale")
    window.sees("5 minutes ago", "figure .span-of-time")


def test_a_selected_row_looks_selected_under_the_pointer(
    open_window: OpenWindow, notes: MadeCollection
) -> None:
    window = open_window(notes.made)
    window.open(f"/collections/{notes.name}")
    window.is_live()
    window.click(f"{ROW} input[type=checkbox]")
    window.wait(f"document.querySelector('{ROW}[aria-selected=true]')")
    selected = background(window, ROW)
    point_at(window, ROW)
    assert background(window, ROW) == selected
    assert background(window, "[role=grid] .rows [data-key=n2]") != selected


def test_the_empty_state_of_a_collection_is_centred(
    open_window: OpenWindow, notes: MadeCollection, server: str
) -> None:
    empty = make_collection(server, made=notes.made, name="blank")
    window = open_window(notes.made)
    window.open(f"/collections/{empty.name}")
    window.sees("No documents yet", ".empty")
    centre = "(({left, right}) => (left + right) / 2)"
    middle = f"{centre}(document.querySelector('.empty').getBoundingClientRect())"
    around = f"{centre}(document.querySelector('.empty').parentElement.getBoundingClientRect())"
    assert abs(window.evaluate(middle) - window.evaluate(around)) < 2
