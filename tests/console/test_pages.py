"""Every page: usable by everybody, within the policy, and looked at."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import chromium
from tests.console.conftest import OpenWindow
from tests.console.window import Window

if TYPE_CHECKING:
    from tests.documents.collection import MadeCollection
    from tests.make import MadeTenant

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[2]
AXE = ROOT / "console" / "node_modules" / "axe-core" / "axe.min.js"

#: Each page with what shows that it is there.
PAGES = {
    "/start": "button.main",
    "/collections/notes": "[data-state=live]",
    "/collections/notes/schema": ".editor-host",
    "/collections/notes/rules": ".try-as .editor-host",
    "/collections/notes/indexes": ".empty",
    "/collections/notes/life": ".life input",
    "/playground": ".editor-host",
    "/subscriptions": "h1",
    "/activity": ".figure",
    "/grid": ".node",
    "/topics": ".empty",
    "/aggregates": ".empty",
    "/datasets": ".empty",
    "/graphql": ".graphql-schema button",
    "/webhooks": ".empty",
    "/keys": "table, .empty",
    "/members": "table",
    "/usage": ".quota",
    "/errors": "table, .empty",
    "/audit": "table, .empty",
    "/settings": "textarea",
}
#: What stands for the others in the tests of every change.
EVERYDAY = ("/start", "/collections/notes", "/collections/notes/rules", "/keys", "/usage")
VIOLATIONS = """
axe.run(document, {resultTypes: ["violations"]}).then(({violations}) =>
  violations.map(({id, nodes}) => `${id}: ${nodes.map(({target}) => target.join(" ")).join(", ")}`))
"""


def opened(open_window: OpenWindow, made: MadeTenant) -> Window:
    window = open_window(made)
    window.page.call("Emulation.setEmulatedMedia", features=[chromium.STILL])
    return window


def go(window: Window, path: str) -> None:
    window.open(path)
    window.wait(f"document.querySelector({PAGES[path]!r})")


def complaints_of_axe(window: Window, paths: Iterable[str]) -> dict[str, list[str]]:
    axe = AXE.read_text()
    found = {}
    for path in paths:
        go(window, path)
        window.evaluate(axe + "; 0")
        if violations := window.evaluate(VIOLATIONS):
            found[path] = violations
    return found


def test_pages_have_nothing_that_keeps_people_out(
    open_window: OpenWindow, notes: MadeCollection
) -> None:
    window = opened(open_window, notes.made)
    assert complaints_of_axe(window, EVERYDAY) == {}
    assert window.complaints == []


@pytest.mark.long
def test_every_page_has_nothing_that_keeps_people_out(
    open_window: OpenWindow, notes: MadeCollection
) -> None:
    window = opened(open_window, notes.made)
    assert complaints_of_axe(window, PAGES) == {}
    assert window.complaints == []


def test_the_way_in_has_nothing_that_keeps_people_out(
    open_window: OpenWindow, notes: MadeCollection
) -> None:
    window = opened(open_window, notes.made)
    window.page.open(f"{window.base}/account")
    window.wait("document.querySelector('table')")
    window.evaluate(AXE.read_text() + "; 0")
    assert window.evaluate(VIOLATIONS) == []
    window.page.call("Network.clearBrowserCookies")
    for path in ("/", "/sign-up", "/forgot-password"):
        window.page.open(window.base + path)
        window.wait("document.querySelector('form')")
        window.evaluate(AXE.read_text() + "; 0")
        assert window.evaluate(VIOLATIONS) == []


@pytest.mark.long
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_pictures_of_every_page(
    open_window: OpenWindow, notes: MadeCollection, pictures: Path, *, dark: bool
) -> None:
    window = opened(open_window, notes.made)
    theme = "dark" if dark else "light"
    for path in PAGES:
        for size, width, height in (("desk", 1280, 800), ("phone", 390, 844)):
            go(window, path)
            name = f"{path.strip('/').replace('/', '-')}-{size}-{theme}.png"
            window.page.picture(pictures / name, width=width, height=height, dark=dark)
            assert (pictures / name).stat().st_size > 1_000
            assert window.evaluate("document.documentElement.scrollWidth <= innerWidth")
    window.evaluate(AXE.read_text() + "; 0")
    assert window.evaluate(VIOLATIONS) == []
