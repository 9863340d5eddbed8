"""The page of a topic: its publications as they arrive, and the form that publishes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.console.looking import opened
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.console.conftest import OpenWindow
    from tests.console.window import Window
    from tests.make import TenantAccount
    from tests.storage_engine.topics.topic_client import Topic

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

ROWS = ".publications li"


@pytest.fixture
def news(dedicated: TenantAccount, server: str) -> Topic:
    from tests.storage_engine.topics.topic_client import make_topic

    return make_topic(server, account=dedicated, name="news", kind="hierarchy")


@pytest.fixture
def window(open_window: OpenWindow, dedicated: TenantAccount) -> Window:
    return opened(open_window, dedicated)


def wait_for_text(window: Window, text: str, within: str = "body") -> None:
    wait_until(lambda: any(text in shown for shown in window.texts(within)), what=f"`{text}`")


def open_topic(window: Window, topic: Topic) -> None:
    """Open the page, and wait until it receives what is published."""
    topic.publish(id="1", data={"text": "before"}, expires_in_s=600)
    window.open(f"/topics/{topic.name}")
    wait_for_text(window, "before", ROWS)


def publish(window: Window, place: str) -> None:
    window.type(".publish input", place)
    window.click(".publish button.main", "Publish")


def test_publications_of_others_appear_and_expire_without_requests(
    window: Window, news: Topic
) -> None:
    open_topic(window, news)
    window.evaluate("performance.clearResourceTimings()")
    news.publish(id="1.4", data={"text": "brief"}, expires_in_s=3)
    wait_for_text(window, "brief", ROWS)
    assert window.texts(f"{ROWS} .cut") == ['{"text":"brief"}', '{"text":"before"}']
    window.wait(f"document.querySelectorAll('{ROWS}').length === 1")
    requests = window.evaluate("performance.getEntriesByType('resource').map((e) => e.name)")
    assert [address for address in requests if "/v1/topics/" in address] == []
    assert window.complaints == []


def test_another_id_is_displayed_with_its_own_publications(window: Window, news: Topic) -> None:
    open_topic(window, news)
    news.publish(id="2", data={"text": "two"}, expires_in_s=600)
    window.type(".topic-id input", "2")
    wait_for_text(window, "two", ROWS)
    assert len(window.texts(ROWS)) == 1


def test_publishing_reports_the_subscriptions_and_whether_the_page_is_one(
    window: Window, news: Topic
) -> None:
    open_topic(window, news)
    publish(window, "1.2")
    wait_for_text(window, "Published to 1 subscription, this page included.")
    news.subscribe(id="1", to="+10m")
    publish(window, "1.3")
    wait_for_text(window, "Published to 2 subscriptions, this page included.")
    publish(window, "2")
    wait_for_text(window, "Published to 0 subscriptions.")
    assert len(window.texts(ROWS)) == 3


def test_reloading_the_page_does_not_leave_a_subscription_behind(
    window: Window, news: Topic
) -> None:
    open_topic(window, news)
    window.open(f"/topics/{news.name}")
    wait_for_text(window, "before", ROWS)
    publish(window, "1.2")
    wait_for_text(window, "Published to 1 subscription, this page included.")


def test_a_map_receives_publications_from_its_northern_edge(
    window: Window, dedicated: TenantAccount, server: str
) -> None:
    from tests.storage_engine.topics.topic_client import make_topic

    topic = make_topic(server, account=dedicated, name="ice", kind="geo")
    window.open("/topics/ice")
    wait_for_text(window, "No publications yet")
    area = {"center": [20.0, 85.04], "radius_m": 10}
    topic.publish(geo=area, data={"text": "floe"}, expires_in_s=600)
    wait_for_text(window, "floe", ROWS)


def test_a_dropped_topic_is_reported(window: Window, news: Topic) -> None:
    open_topic(window, news)
    assert news.caller.delete(news.control_path).status_code == 204
    wait_for_text(window, "The topic has been deleted.")
