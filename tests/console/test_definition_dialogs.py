"""Aggregates, topics and datasets, created and changed with their forms."""

from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from tests.console.conftest import OpenWindow
from tests.console.forms import MAIN, PREVIEW, control_plane, field, label, save
from tests.console.looking import opened, violations
from tests.console.window import Window

if TYPE_CHECKING:
    from tests.make import TenantAccount

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]


@pytest.fixture
def window(open_window: OpenWindow, dedicated: TenantAccount) -> Window:
    return opened(open_window, dedicated)


def measure(name: str) -> str:
    return f"{MAIN} [aria-label={json.dumps(f'Measure {name}')}]"


def in_json(window: Window, definition: object) -> None:
    """Write the definition as JSON, then show the form."""
    window.click(".definition-bar button", "JSON")
    window.write("dialog .editor-host", json.dumps(definition))
    window.click(".definition-bar button", "Form")


def wrong(window: Window) -> list[str]:
    return window.texts(f"{MAIN} .wrong")


def test_an_aggregate_is_built_and_changed_with_the_form_alone(
    window: Window, dedicated: TenantAccount, server: str
) -> None:
    window.open("/aggregates")
    window.click("button", "New aggregate")
    window.type(field(window, "Name"), "sales")
    window.type(field(window, "Dimensions"), "shop, customer.country")
    window.type(field(window, "Time field"), "sold_at")
    window.type(field(window, "Bucket length"), "1h")
    window.type(field(window, "Name", measure("latency")), "revenue")
    within = measure("revenue")
    window.select(field(window, "Operator", within), "sum")
    window.type(field(window, "Field", within), "price")
    window.select(field(window, "Number type", within), "decimal")
    window.type(field(window, "Decimal places", within), "4")
    window.click(f"{MAIN} button", "Add a measure")
    window.select(field(window, "Operator", measure("measure_3")), "quantiles")
    window.type(field(window, "Quantiles", measure("measure_3")), "0.5, 0.99")
    window.click(label("Remove rollup 1"))
    window.click(f"{MAIN} button", "Add a rollup")
    window.click("[aria-label='Rollup 1'] label", "shop")
    window.click("[aria-label='Rollup 1'] label", "customer.country")
    window.type(field(window, "Retention"), "")
    window.shows('"revenue": "252.0000"', PREVIEW)
    window.shows("POST /v1/aggregates/sales/query", PREVIEW)
    assert violations(window) == []
    window.click("dialog button.main", "Create aggregate")
    window.shows("sales", "h1")
    members = control_plane(server, dedicated, "aggregates/sales")
    assert {name: members[name] for name in ("dimensions", "time", "rollups", "retention")} == {
        "dimensions": ["shop", "customer.country"],
        "time": {"field": "sold_at", "bucket": "1h"},
        "rollups": [["customer.country"]],
        "retention": None,
    }
    assert members["measures"] == {
        "count": {"op": "count"},
        "revenue": {"op": "sum", "field": "price", "type": "decimal", "scale": 4},
        "measure_3": {
            "op": "quantiles",
            "field": "value",
            "quantiles": [0.5, 0.99],
            "accuracy": 0.01,
        },
    }
    window.click("header [aria-label='Change the aggregate']")
    window.click(label("Remove measure_3"))
    window.type(field(window, "Retention"), "30d")
    window.press("Escape")
    window.shows("What you entered is not saved", "dialog [role=alert]")
    window.click("dialog button.main", "Save")
    window.wait("!document.querySelector('dialog')")
    changed = control_plane(server, dedicated, "aggregates/sales")
    assert list(changed["measures"]) == ["count", "revenue"]
    assert (changed["retention"], changed["rollups"]) == ("30d", [["customer.country"]])
    assert window.complaints == []


def test_a_view_is_built_with_the_form_alone(
    window: Window, dedicated: TenantAccount, server: str
) -> None:
    from tests.documents.collection import make_collection

    make_collection(server, account=dedicated, name="orders")
    window.open("/aggregates")
    window.click("button", "New aggregate")
    window.type(field(window, "Name"), "by_app")
    window.select(field(window, "Source"), "orders")
    window.type(field(window, "Only documents that match"), '{"test": {"$ne": true}}')
    window.click(f"{MAIN} label", "Divide rows into buckets of time")
    window.type(field(window, "Retention"), "")
    window.shows("Rows follow the documents of orders", PREVIEW)
    window.click("dialog button.main", "Create aggregate")
    window.shows("by_app", "h1")
    members = control_plane(server, dedicated, "aggregates/by_app")
    assert members["source"] == {"collection": "orders", "filter": {"test": {"$ne": True}}}
    assert members["time"] is None


def test_errors_of_an_aggregate_are_at_its_fields(window: Window) -> None:
    window.open("/aggregates")
    window.click("button", "New aggregate")
    window.type(field(window, "Name"), "Sales")
    window.type(field(window, "Dimensions"), "app, $x")
    window.type(field(window, "Bucket length"), "5 minutes")
    window.type(field(window, "Field", measure("latency")), "")
    window.click("dialog button.main", "Create aggregate")
    window.wait(f"document.querySelectorAll('{MAIN} .wrong').length === 4")
    window.type(field(window, "Bucket length"), "5m")
    window.wait(f"document.querySelectorAll('{MAIN} .wrong').length === 3")
    window.click(".definition-bar button", "JSON")
    window.wait(
        "document.querySelector('dialog .editor-host')?.shadowRoot"
        "?.querySelector('.cm-lintRange-error')"
    )


_MEASURES: tuple[dict[str, Any], ...] = (
    {"op": "count"},
    {"op": "sum", "field": "x.y", "type": "decimal", "scale": 3},
    {"op": "avg", "field": "x", "type": "int"},
    {"op": "top", "field": "x", "k": 5},
    {"op": "quantiles", "field": "x", "quantiles": [0.5, 1.0], "accuracy": 0.05},
)


def random_aggregate(random: Random) -> dict[str, Any]:
    times = (None, {"field": "at", "bucket": "5m"}, {"field": "at", "bucket": "1d"})
    names = random.sample(("a", "b", "c"), random.randint(1, 3))
    return {
        "dimensions": random.sample(("p", "q.r", "s"), random.randint(0, 3)),
        "time": random.choice(times),
        "measures": {name: random.choice(_MEASURES) for name in names},
        "rollups": [],
    }


def test_the_form_of_an_aggregate_changes_nothing_but_what_is_edited(
    window: Window, dedicated: TenantAccount, server: str
) -> None:
    random = Random(0)
    for number in range(6):
        definition = random_aggregate(random)
        name = f"aggregate_{number}"
        window.open("/aggregates")
        window.click("button", "New aggregate")
        in_json(window, {"name": "x", "source": None, **definition})
        window.type(field(window, "Name"), name)
        window.click("dialog button.main", "Create aggregate")
        window.shows(name, "h1")
        members = control_plane(server, dedicated, f"aggregates/{name}")
        for member in ("dimensions", "time", "rollups"):
            assert members[member] == definition[member]
        for measured, value in definition["measures"].items():
            assert value.items() <= members["measures"][measured].items()


def test_a_topic_is_built_and_changed_with_the_form_alone(
    window: Window, dedicated: TenantAccount, server: str
) -> None:
    window.open("/topics")
    window.click("button", "New topic")
    window.type(field(window, "Name"), "floor")
    window.shows('"id": "1.4.2"', PREVIEW)
    window.select(field(window, "Matching"), "plane")
    window.type(field(window, "West, south, east, north"), "0, 0, 40, 20")
    window.type(field(window, "Cells per side"), "4")
    window.type(field(window, "Retention"), "90m")
    window.type(field(window, "Maximum data size"), "2 KiB")
    window.shows('"geo": {"center": [20, 10], "radius": 2}', f"{PREVIEW} pre")
    assert violations(window) == []
    window.click("dialog button.main", "Create topic")
    window.shows("floor", "h1")
    topic = control_plane(server, dedicated, "topics/floor")
    assert {name: topic[name] for name in ("kind", "retention_s", "max_data_bytes", "grid")} == {
        "kind": "plane",
        "retention_s": 5_400,
        "max_data_bytes": 2_048,
        "grid": {"bounds": [0, 0, 40, 20], "sides": 4, "depth": 8},
    }
    window.click("header [aria-label='Change the topic']")
    window.type(field(window, "Retention"), "a day")
    window.shows("such as 90m", ".wrong")
    window.type(field(window, "Retention"), "2d")
    window.click("dialog button.main", "Save")
    window.wait("!document.querySelector('dialog')")
    assert control_plane(server, dedicated, "topics/floor")["retention_s"] == 172_800
    assert window.complaints == []


def test_errors_of_a_topic_are_at_its_fields(window: Window) -> None:
    window.open("/topics")
    window.click("button", "New topic")
    window.type(field(window, "Name"), "1st")
    window.select(field(window, "Matching"), "plane")
    window.type(field(window, "West, south, east, north"), "5, 0, 1, 1")
    window.type(field(window, "Retention"), "900d")
    window.click("dialog button.main", "Create topic")
    window.wait(f"document.querySelectorAll('{MAIN} .wrong').length === 3")
    assert any("West must be less" in text for text in wrong(window))


def test_a_dataset_is_built_and_extended_with_the_form_alone(
    window: Window, dedicated: TenantAccount, server: str
) -> None:
    window.open("/datasets")
    window.click("button", "New dataset")
    window.type(field(window, "Name"), "web")
    window.click(label("Remove the view by_author"))
    window.type(field(window, "Table"), "visits")
    window.click(label("Remove text"))
    window.click(label("Remove author"))
    window.type(f"{MAIN} .dataset-column .input", "visitor")
    window.click(f"{MAIN} button", "Add an ID-key")
    window.type(field(window, "ID-key"), "page")
    window.click(f"{MAIN} button", "Add a column")
    window.type(f"{MAIN} .dataset-column:nth-of-type(3) .input", "url")
    window.select(label("Type of url"), "id:page")
    window.click(label("url is in the key"))
    window.click(f"{MAIN} button", "Add a view")
    window.type(field(window, "View"), "by_page")
    window.type(field(window, "Sorted by"), "url, visitor")
    window.type(field(window, "Columns"), "url, visitor")
    window.type(field(window, "State retention"), "1h")
    window.shows('{"visits":{"visitor":1,"at":"2026-11-21T16:30:00Z","url":"text"}}', PREVIEW)
    window.shows("POST /v1/datasets/web/query", PREVIEW)
    assert violations(window) == []
    window.click("dialog button.main", "Create dataset")
    window.shows("No uploads yet")
    dataset = control_plane(server, dedicated, "datasets/web")
    visits = {
        "columns": {"visitor": "int64", "at": "timestamp", "url": "id:page"},
        "key": ["visitor", "url"],
        "views": {"by_page": {"key": ["url", "visitor"], "columns": ["url", "visitor"]}},
    }
    assert json.dumps(dataset["tables"]) == json.dumps({"visits": visits})
    assert (dataset["id_keys"], dataset["retention_s"]) == ({"page": "string"}, 3_600)

    window.click("header nav a", "Tables")
    assert window.evaluate(f"document.querySelector({label('Type of url')!r}).disabled")
    window.click(f"{MAIN} button", "Add a column")
    window.type(f"{MAIN} .dataset-column:nth-of-type(4) .input", "seconds")
    window.select(label("Type of seconds"), "double")
    save(window)
    visits["columns"] = {**visits["columns"], "seconds": "double"}  # type: ignore[dict-item]
    dataset = control_plane(server, dedicated, "datasets/web")
    assert json.dumps(dataset["tables"]) == json.dumps({"visits": visits})
    assert window.complaints == []


def test_errors_of_a_dataset_are_at_its_fields(window: Window) -> None:
    window.open("/datasets")
    window.click("button", "New dataset")
    window.type(field(window, "Name"), "posts")
    window.type(field(window, "Sorted by"), "nobody")
    window.click(label("id is in the key"))
    window.type(f"{MAIN} .dataset-column .input", "no spaces")
    window.click("dialog button.main", "Create dataset")
    window.wait(f"document.querySelectorAll('{MAIN} .wrong').length >= 2")
    window.type(f"{MAIN} .dataset-column .input", "id")
    window.click(label("id is in the key"))
    window.click("dialog button.main", "Create dataset")
    window.shows("nobody", f"{MAIN} .form-row .wrong")


@pytest.mark.parametrize("page", ["/aggregates", "/topics", "/datasets"])
def test_members_that_the_form_does_not_support_are_listed(window: Window, page: str) -> None:
    window.open(page)
    window.click("header button.main")
    in_json(window, {"name": 5, "mystery": {"a": 1}})
    window.shows("name", f"{MAIN} .in-json button")
    window.click(f"{MAIN} .in-json button", "mystery")
    text = "document.querySelector('dialog .editor-host')?.shadowRoot?.textContent"
    window.wait(f"{text}?.includes('mystery')")
