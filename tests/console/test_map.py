"""The map of a topic at the zoom of a city."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.console.looking import opened, violations

if TYPE_CHECKING:
    from pathlib import Path

    from tests.console.conftest import OpenWindow
    from tests.console.window import Window
    from tests.make import TenantAccount

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

#: Three couriers share a crossroads in Vienna; one is five kilometres away.
COURIERS = {
    "Ada": [16.3738, 48.2082],
    "Ben": [16.3740, 48.2083],
    "Cleo": [16.3742, 48.2081],
    "Dev": [16.4400, 48.2200],
}


@pytest.fixture
def city(open_window: OpenWindow, dedicated: TenantAccount, server: str) -> Window:
    from tests.storage_engine.topics.topic_client import make_topic

    topic = make_topic(server, account=dedicated, name="couriers", kind="geo")
    for name, place in COURIERS.items():
        area = {"center": place, "radius_m": 10}
        topic.publish(geo=area, data={"name": name}, expires_in_s=3600)
    window = opened(open_window, dedicated)
    window.page.call(
        "Emulation.setDeviceMetricsOverride",
        width=1440,
        height=900,
        deviceScaleFactor=1,
        mobile=False,
    )
    window.open("/topics/couriers")
    window.wait("document.querySelectorAll('.topic-map .place').length === 2")
    return window


def texts(window: Window, selector: str) -> list[str]:
    found: list[str] = window.evaluate(
        f"[...document.querySelectorAll('.topic-map {selector}')].map((e) => e.textContent)"
    )
    return found


def test_a_close_map_names_districts_and_shows_its_scale(city: Window, pictures: Path) -> None:
    city.wait(
        "[...document.querySelectorAll('.city-name')].some((e) => e.textContent === 'Vienna')"
    )
    assert "Innere Stadt" in texts(city, ".city-name")
    assert texts(city, ".map-scale") == ["500 m"]
    assert "Brazil" not in texts(city, ".land-name")
    assert violations(city) == []
    city.page.picture(pictures / "map-city.png", width=1440, height=900)
    assert city.complaints == []


def test_a_cluster_counts_its_publications_and_opens_on_a_click(city: Window) -> None:
    assert texts(city, ".cluster-count") == ["3"]
    assert set(texts(city, ".place-name")) == {"Dev", "Cleo and 2 more"}
    cluster = "[...document.querySelectorAll('.place')].find((e) => e.textContent.startsWith('3'))"
    city.evaluate(f"{cluster}.dispatchEvent(new MouseEvent('click', {{bubbles: true}}))")
    city.wait("document.querySelectorAll('.topic-map .place').length >= 4")
    assert {"Ada", "Ben", "Cleo"} <= set(texts(city, ".place-name"))
    city.click(".map-buttons button", "Fit")
    city.wait("document.querySelectorAll('.topic-map .place').length === 2")


def test_labels_of_a_map_do_not_cover_each_other(city: Window) -> None:
    city.wait("document.querySelector('.city-name')")
    covered = city.evaluate("""(() => {
        const boxes = [...document.querySelectorAll(".city-name, .place-name")]
            .map((label) => label.getBoundingClientRect());
        return boxes.some((a, n) => boxes.slice(n + 1).some((b) =>
            a.left < b.right && a.right > b.left && a.top < b.bottom && a.bottom > b.top));
    })()""")
    assert covered is False
