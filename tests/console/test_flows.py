"""Complete user flows in the console, on real servers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.chromium import Browser
from tests.console.conftest import OpenWindow
from tests.console.window import Window, sign_in
from tests.realtime.live.conftest import BackgroundProcesses
from tests.sdk.proxy import Proxy, through_proxy
from tests.tenants.webhooks.receivers import webhook_receiver
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.documents.collection import CollectionClient

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

#: The test event of a webhook.
TEST = "webhook.test"


@pytest.fixture
def network(server: str) -> Iterator[Proxy]:
    """A proxy between the browser and the server."""
    with through_proxy(server) as proxy:
        yield proxy


@pytest.fixture
def far_window(
    browser: Browser, network: Proxy, notes: CollectionClient, background: BackgroundProcesses
) -> Window:
    """A window that reaches the server through the proxy."""
    from tests.make import make_session

    return sign_in(browser.page(), network.url, notes.account, make_session(notes.account.owner)[0])


def test_changes_during_a_network_outage_are_shown_when_it_ends(
    far_window: Window, network: Proxy, notes: CollectionClient
) -> None:
    window = far_window
    window.open(f"/collections/{notes.name}")
    window.is_live()
    network.refuses = True
    network.cut()
    window.wait(
        "['offline', 'connecting'].includes(document.querySelector('[data-state]').dataset.state)"
    )
    notes.insert({"_id": "n7", "title": "While you were away", "rank": 7})
    network.refuses = False
    window.shows("While you were away", "[role=row]")
    window.is_live()


@pytest.mark.long
def test_over_a_slow_network_pages_show_that_they_load(
    far_window: Window, network: Proxy, notes: CollectionClient
) -> None:
    network.delay_s = 0.2
    far_window.open(f"/collections/{notes.name}")
    far_window.shows("Note 1", "[role=row]")
    far_window.is_live()
    notes.insert({"_id": "n8", "title": "Slow, but there", "rank": 8})
    far_window.shows("Slow, but there", "[role=row]")
    assert far_window.complaints == []


def test_an_ended_subscription_starts_again_and_misses_nothing(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    watcher, window = open_window(notes.account), open_window(notes.account)
    watcher.open(f"/collections/{notes.name}")
    watcher.is_live()
    window.open("/subscriptions")
    window.click("table button", "End")
    window.click("dialog button.danger", "End subscription")
    watcher.shows("stopped", ".grid-foot")
    notes.insert({"_id": "n9", "title": "Meanwhile", "rank": 9})
    watcher.click(".grid-foot button", "Reconnect")
    watcher.shows("Meanwhile", "[role=row]")
    watcher.is_live()
    notes.insert({"_id": "n10", "title": "Afterwards", "rank": 10})
    watcher.shows("Afterwards", "[role=row]")


def test_a_file_is_imported_with_what_was_refused_and_exported_again(
    open_window: OpenWindow, notes: CollectionClient, tmp_path: Path
) -> None:
    lines = [{"_id": f"i{number}", "title": f"Imported {number}"} for number in range(2_000)]
    file = tmp_path / "notes.ndjson"
    file.write_text("\n".join(json.dumps(line) for line in [*lines, {"_id": "n1"}]))
    window = open_window(notes.account)
    window.open(f"/collections/{notes.name}")
    window.is_live()
    window.click("button[aria-label=More]")
    window.click("[role=menuitem]", "Import")
    window.hand_over(file, "Import")
    window.shows("2000 written, 0 skipped, 1 rejected", "dialog [role=status]")
    window.shows("Line 2001", "dialog [role=status]")
    window.click("dialog footer button", "Close")
    window.shows("2,003 documents", "[data-testid=count]")

    window.page.call(
        "Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path / "out")
    )
    window.click("button[aria-label=More]")
    window.click("[role=menuitem]", "Export as NDJSON")
    window.shows("notes.ndjson exported", ".toast")
    saved = tmp_path / "out" / "notes.ndjson"

    def saved_lines() -> int:
        return len(saved.read_text().splitlines()) if saved.exists() else 0

    # The browser creates the file before it writes to it.
    wait_until(lambda: saved_lines() == 2_003, what="every document to be saved")
    assert window.complaints == []


@pytest.mark.long
def test_a_webhook_is_created_delivers_redelivers_and_fails(
    open_window: OpenWindow, notes: CollectionClient, background: BackgroundProcesses
) -> None:
    background.start_worker()
    with webhook_receiver() as receiver:
        window = open_window(notes.account)
        window.open("/webhooks")
        window.click("button", "New webhook")
        window.type("dialog label:nth-of-type(1) input", "Chat")
        window.type("dialog label:nth-of-type(2) input", receiver.url)
        window.type("dialog label:nth-of-type(3) input", "api_key.*")
        window.click("dialog button.main", "Create webhook")
        window.shows("shown only once", "dialog")
        window.click("dialog button.main", "Done")
        window.shows("active", ".badge")

        receiver.answer(204)
        window.click("button", "Send a test")
        window.shows("delivered", "tbody .badge")
        window.click("tbody button", "Redeliver")
        window.wait("document.querySelectorAll('tbody .badge.good').length === 2")
        sent = [message.id for message in receiver.messages if message.event["type"] == TEST]
        assert (len(sent), len(set(sent))) == (2, 1)

        receiver.answer(500, b"not now")
        window.click("button", "Send a test")
        window.shows("500", "tbody td.number")
        window.open("/errors")
        window.shows("webhook_delivery_failed", "table")


@pytest.mark.long
def test_an_invited_user_signs_up_and_becomes_a_member(
    open_window: OpenWindow,
    notes: CollectionClient,
    background: BackgroundProcesses,
    browser: Browser,
    server: str,
) -> None:
    from tests.mailbox import mails_to, next_mail
    from tests.make import unique

    background.start_worker()
    email = f"{unique('guest')}@example.test"
    window = open_window(notes.account)
    window.open("/members")
    window.click("button", "Invite")
    window.type("dialog input[type=email]", email)
    window.click("dialog button.main", "Invite")
    window.shows(email, "table")

    wait_until(lambda: bool(mails_to(email)), what="the invitation to be sent")
    mail = next_mail(email, mails_to(email)[0].subject)
    guest = Window(browser.page(), server, notes.account.slug)
    guest.page.call("Network.clearBrowserCookies")
    guest.page.open(f"{server}/{mail.page}#token={mail.token}")
    guest.type("input[autocomplete=name]", "Ada Guest")
    guest.type("input[type=password]", "a long password")
    guest.click("button", "Create an account and join")
    guest.wait(f"location.pathname.startsWith('/t/{notes.account.slug}')")
    guest.open(f"/collections/{notes.name}")
    guest.shows("Note 1", "[role=row]")
