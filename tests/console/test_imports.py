"""Importing files with a mapping, and moving a map."""

from __future__ import annotations

import datetime as dt
import json
import random
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.console.conftest import OpenWindow
from tests.console.looking import opened, take_pictures, violations
from tests.console.window import Window

if TYPE_CHECKING:
    from tests.documents.collection import CollectionClient
    from tests.make import TenantAccount

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

CSV = """\ufeffSKU;Product name;Price;In stock;Added;Note
00017;Teapot, blue;68.5;true;2026-11-21;"Holds 1.2 l
and whistles"
00018;Kettle;41;false;2026-11-22T08:30:00Z;
00019;Filter papers;call us;true;2026-11-23;"a ""large"" pack"
00020;Mug;12;true;2026-11-24;
"""


@pytest.fixture
def wizard(open_window: OpenWindow, notes: CollectionClient) -> Window:
    """The dialog that imports into a collection."""
    window = opened(open_window, notes.account)
    window.open(f"/collections/{notes.name}")
    window.is_live()
    window.click("button[aria-label=More]")
    window.click("[role=menuitem]", "Import")
    window.shows("Drop a file here", "dialog .drop-zone")
    return window


def choose(window: Window, label: str, value: str) -> None:
    """Choose an option of a select, as a person does."""
    window.wait(f"document.querySelector({json.dumps(label)})")
    window.evaluate(
        f"(() => {{ const s = document.querySelector({json.dumps(label)});"
        "Object.getOwnPropertyDescriptor(HTMLSelectElement.prototype, 'value')"
        f".set.call(s, {json.dumps(value)});"
        "s.dispatchEvent(new Event('change', {bubbles: true})); })()"
    )


def test_the_columns_of_a_csv_file_are_mapped_and_previewed_before_it_is_imported(
    wizard: Window, notes: CollectionClient, tmp_path: Path, pictures: Path
) -> None:
    file = tmp_path / "products.csv"
    file.write_text(CSV)
    take_pictures(wizard, pictures, "import-file")
    wizard.choose_file("dialog input[type=file]", file)
    wizard.shows("Product name", "dialog [aria-label=Columns]")
    wizard.shows("The first 4 records are valid", "dialog [aria-label=Preview]")
    assert violations(wizard) == []
    choose(wizard, ".import-key select", "SKU")
    wizard.type("[aria-label='Field of Product name']", "name")
    choose(wizard, "[aria-label='Type of Price']", "number")
    wizard.click("[aria-label='Import Note']")
    wizard.shows("1 of the first 4 records would be rejected", "dialog [aria-label=Preview]")
    wizard.shows('Line 5: Price: "call us" is not a number', "dialog [aria-label=Errors]")
    assert violations(wizard) == []
    take_pictures(wizard, pictures, "import-mapping", desk=(1440, 900))
    wizard.click("dialog footer button", "Import")
    wizard.shows("3 written, 0 skipped, 1 rejected", "dialog [role=status]")
    wizard.shows("Line 5", "dialog [role=status]")
    take_pictures(wizard, pictures, "import-result")
    documents = notes.query({"_id": {"$gte": "00000", "$lt": "1"}})
    assert documents[0] == {
        "_id": "00017",
        "name": "Teapot, blue",
        "Price": 68.5,
        "In stock": True,
        "Added": {"$date": "2026-11-21T00:00:00Z"},
    }
    assert [document["_id"] for document in documents] == ["00017", "00018", "00020"]
    assert wizard.complaints == []


def test_a_record_that_violates_the_schema_names_its_place_and_field(
    open_window: OpenWindow, server: str, tmp_path: Path
) -> None:
    from tests.documents.collection import make_collection

    strict = make_collection(server, schema={"properties": {"price": {"type": "number"}}})
    file = tmp_path / "rows.json"
    file.write_text('[{"price": 1}, {"price": "abc"},\n {"price": "def"}]')
    window = open_window(strict.account)
    window.open(f"/collections/{strict.name}")
    window.is_live()
    window.click("button[aria-label=More]")
    window.click("[role=menuitem]", "Import")
    window.choose_file("dialog input[type=file]", file)
    window.click("dialog footer button", "Import")
    window.shows("1 written, 0 skipped, 2 rejected", "dialog [role=status]")
    for line in (
        'Line 1, column 16: price: expected a number, got "abc"',
        'Line 2, column 2: price: expected a number, got "def"',
    ):
        window.shows(line, "dialog [aria-label=Errors]")


def test_a_mapping_that_cannot_hold_is_explained_before_anything_is_sent(
    wizard: Window, notes: CollectionClient, tmp_path: Path
) -> None:
    file = tmp_path / "rows.json"
    file.write_text(json.dumps([{"a": 1, "b": "2026-11-21"}, {"a": 2, "c": None}], indent=1))
    wizard.choose_file("dialog input[type=file]", file)
    wizard.shows("The first 2 records are valid", "dialog")
    wizard.type("[aria-label='Field of b']", "a")
    wizard.shows("Two columns become a.", "dialog [role=alert]")
    wizard.wait("document.querySelector('dialog button.main').disabled")
    wizard.type("[aria-label='Field of b']", "times.b")
    choose(wizard, "[aria-label='Type of b']", "date")
    wizard.click("dialog footer button", "Import")
    wizard.shows("2 written", "dialog [role=status]")
    imported = notes.query({"a": {"$exists": True}}, projection={"_id": 0}, sort={"a": 1})
    assert imported == [
        {"a": 1, "times": {"b": {"$date": "2026-11-21T00:00:00Z"}}},
        {"a": 2, "c": None},
    ]


def test_a_file_that_cannot_be_read_says_why(wizard: Window, tmp_path: Path) -> None:
    file = tmp_path / "excel.csv"
    file.write_text("a,b\n1,2\n", "utf-16")
    wizard.choose_file("dialog input[type=file]", file)
    wizard.shows("UTF-16", "dialog [role=alert]")
    wizard.wait("document.querySelector('dialog button.main').disabled")
    damaged = tmp_path / "rows.parquet"
    damaged.write_bytes(b"PAR1")
    wizard.choose_file("dialog input[type=file]", damaged)
    wizard.shows("The Parquet file cannot be read", "dialog [role=alert]")
    wizard.wait("document.querySelector('dialog button.main').disabled")
    other = tmp_path / "rows.arrow"
    other.write_bytes(b"ARROW1")
    wizard.choose_file("dialog input[type=file]", other)
    wizard.shows("Arrow stream files cannot be imported here", "dialog [role=alert]")


def test_a_parquet_file_shows_its_types_and_first_rows_before_it_is_imported(
    wizard: Window, notes: CollectionClient, tmp_path: Path, pictures: Path
) -> None:
    file = tmp_path / "orders.parquet"
    amounts = [Decimal("19.90"), Decimal("9" * 36), None]
    columns = {
        "order": pa.array([1001, 1002, 1003], pa.int64()),
        "customer": ["ada", "bob", "cleo"],
        "amount": pa.array(amounts, pa.decimal128(38, 2)),
        "placed": pa.array([dt.datetime(2026, 11, 21, 8, 30, tzinfo=dt.UTC)] * 3),
        "lines": [[{"sku": "T1", "count": 2}], [], [{"sku": "K7", "count": 1}]],
    }
    pq.write_table(pa.table(columns), file)
    wizard.choose_file("dialog input[type=file]", file)
    wizard.shows("decimal128(38, 2)", "dialog [aria-label=Columns]")
    wizard.shows("timestamp[us, tz=UTC]", "dialog [aria-label=Columns]")
    wizard.shows("1 of the 3 rows would be rejected", "dialog [aria-label=Preview]")
    wizard.shows("Row 2: amount", "dialog [aria-label=Errors]")
    wizard.shows("2026-11-21", "dialog [aria-label=Preview] table")
    choose(wizard, ".import-key select", "order")
    wizard.shows("1001", "dialog [aria-label=Preview] td")
    assert violations(wizard) == []
    take_pictures(wizard, pictures, "import-parquet", desk=(1440, 900))
    wizard.click("dialog footer button", "Import")
    wizard.shows("2 written, 0 skipped, 1 rejected", "dialog [role=status]")
    wizard.shows("Row 2", "dialog [role=status]")
    documents = notes.query({"_id": {"$gte": 1000}})
    assert [(document["_id"], document.get("amount")) for document in documents] == [
        (1001, {"$numberDecimal": "19.90"}),
        (1003, None),
    ]
    assert documents[0]["placed"] == {"$date": "2026-11-21T08:30:00Z"}
    assert wizard.complaints == []


def test_a_large_parquet_file_shows_its_columns_and_then_the_rows_that_are_written(
    wizard: Window, tmp_path: Path, pictures: Path
) -> None:
    file = tmp_path / "large.parquet"
    noise = [random.Random(n).randbytes(180) for n in range(60_000)]
    pq.write_table(pa.table({"n": range(60_000), "noise": noise}), file, compression="none")
    wizard.choose_file("dialog input[type=file]", file)
    wizard.shows("60,000 rows; the file is too large for a preview", "dialog [aria-label=Preview]")
    wizard.shows("binary", "dialog [aria-label=Columns]")
    wizard.click("dialog footer button.main", "Import")
    progress = "document.querySelector('dialog .import p')?.textContent"
    wizard.wait(rf"/Writing documents… \d+,000 of 60,000/.test({progress})")
    assert 0 < wizard.evaluate("document.querySelector('dialog progress').value") < 1
    take_pictures(wizard, pictures, "import-progress", desk=(1440, 900))
    wizard.click("dialog footer button", "Cancel")
    wizard.shows("The import was cancelled.", "dialog")


def test_a_cancelled_import_reports_what_remains(wizard: Window, tmp_path: Path) -> None:
    file = tmp_path / "long.ndjson"
    pad = "x" * 1_000
    file.write_text("".join(json.dumps({"n": n, "pad": pad}) + "\n" for n in range(60_000)))
    wizard.choose_file("dialog input[type=file]", file)
    wizard.shows("records are valid", "dialog")
    wizard.click("dialog footer button.main", "Import")
    wizard.wait("document.querySelector('dialog progress')")
    wizard.click("dialog footer button", "Cancel")
    wizard.shows("The import was cancelled. The documents written so far remain.", "dialog")


def test_a_csv_file_with_other_column_names_is_mapped_to_a_table(
    open_window: OpenWindow, dedicated: TenantAccount, server: str, tmp_path: Path, pictures: Path
) -> None:
    from tests.analytics.dataset_client import make_dataset

    shop = make_dataset(server, account=dedicated)
    window = opened(open_window, dedicated)
    window.open("/datasets/shop")
    window.click("header button", "Upload")
    file = tmp_path / "orders.csv"
    file.write_text("Order no,Customer,Amount,Day\n1,ada,2.5,2026-11-21\n2,bob,x,2026-11-22\n")
    window.choose_file("dialog input[type=file]", file)
    window.shows("Choose the column of the key id.", "dialog [role=alert]")
    choose(window, "[aria-label='Table column of Order no']", "id")
    window.shows("1 of the first 2 records would be rejected", "dialog")
    take_pictures(window, pictures, "upload-mapping", desk=(1440, 900))
    window.click("dialog footer button", "Upload")
    window.shows('line 3: Amount: expected a number, got "x"', "dialog [role=alert]")
    corrected = tmp_path / "corrected.csv"
    corrected.write_text(file.read_text().replace("x", "7"))
    window.choose_file("dialog input[type=file]", corrected)
    window.shows("corrected.csv", "dialog .import-file")
    choose(window, "[aria-label='Table column of Order no']", "id")
    window.click("dialog footer button", "Upload")
    window.shows("2 rows uploaded (state 1)", "dialog [role=status]")
    rows = shop.rows("orders", columns=["id", "customer", "amount"], order=[["id", 1]])
    assert [(row["id"], row["customer"], row["amount"]) for row in rows] == [
        (1, "ada", 2.5),
        (2, "bob", 7.0),
    ]
    assert window.complaints == []


@pytest.fixture
def atlas(open_window: OpenWindow, dedicated: TenantAccount, server: str) -> Window:
    """The map of a topic with publications in several countries."""
    from tests.storage_engine.topics.topic_client import make_topic

    topic = make_topic(server, account=dedicated, name="cities", kind="geo")
    for name, place in {"Wien": [16.37, 48.21], "Nairobi": [36.82, -1.29]}.items():
        area = {"center": place, "radius_m": 40_000}
        topic.publish(geo=area, data={"name": name}, expires_in_s=3600)
    topic.publish(geo={"box": [-100, 30, -90, 40]}, data={"name": "Plains"}, expires_in_s=3600)
    window = opened(open_window, dedicated)
    window.open("/topics/cities")
    window.wait("document.querySelectorAll('.topic-map .place').length === 3")
    return window


def test_a_map_shows_land_with_names_and_moves_by_keyboard_and_buttons(
    atlas: Window, pictures: Path
) -> None:
    atlas.wait("document.querySelectorAll('.topic-map .land').length > 150")
    names = "[...document.querySelectorAll('.land-name')].map((e) => e.textContent)"
    atlas.wait(f"{names}.includes('Brazil')")
    assert violations(atlas) == []
    take_pictures(atlas, pictures, "map", desk=(1440, 900))

    def transform() -> str:
        group = "document.querySelector('.topic-map g')"
        texts: str = atlas.evaluate(f"{group}.getAttribute('transform')")
        return texts

    fitted = transform()
    atlas.evaluate("document.querySelector('.topic-map svg').focus()")
    atlas.press("ArrowRight")
    moved = transform()
    assert moved != fitted
    atlas.click("[aria-label='Zoom in']")
    atlas.click("[aria-label='Zoom in']")
    assert transform() != moved
    take_pictures(atlas, pictures, "map-near", desk=(1440, 900))
    atlas.click(".map-buttons button", "Fit")
    atlas.wait(
        f"document.querySelector('.topic-map g').getAttribute('transform') === {json.dumps(fitted)}"
    )
    assert atlas.complaints == []


def test_a_click_on_a_map_chooses_the_place_and_a_drag_only_moves_it(atlas: Window) -> None:
    box = atlas.evaluate(
        "(({left, top, width, height}) => [left + width / 2, top + height / 2])"
        "(document.querySelector('.topic-map svg').getBoundingClientRect())"
    )

    def mouse(kind: str, x: float, y: float) -> None:
        atlas.page.call(
            "Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1
        )

    x, y = box
    mouse("mousePressed", x, y)
    for step in (10, 30, 60):
        mouse("mouseMoved", x + step, y)
    mouse("mouseReleased", x + 60, y)
    assert atlas.evaluate("document.querySelector('.publish input').value") == ""
    mouse("mousePressed", x + 60, y)
    mouse("mouseReleased", x + 60, y)
    atlas.wait("document.querySelector('.publish input').value.includes(', ')")
