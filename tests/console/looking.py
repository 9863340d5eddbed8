"""Checks the accessibility and the layout of pages."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from tests import chromium
from tests.console.window import Window

if TYPE_CHECKING:
    from tests.console.conftest import OpenWindow
    from tests.make import TenantAccount

#: The variable with the folder in which screenshots are kept. Four of them take most of a second of
#: a core.
PICTURES_VARIABLE = "RILLBASE_PICTURES"
ROOT = Path(__file__).resolve().parents[2]
AXE = ROOT / "console" / "node_modules" / "axe-core" / "axe.min.js"
_VIOLATIONS = """
axe.run(document, {resultTypes: ["violations"]}).then(({violations}) =>
  violations.map(({id, nodes}) => `${id}: ${nodes.map(({target}) => target.join(" ")).join(", ")}`))
"""
#: Nothing is wider than the page, so that it does not scroll sideways.
_FITS = "document.documentElement.scrollWidth <= innerWidth"

#: Widths and heights of a desktop and of a phone screen.
Size = tuple[int, int]
DESK: Size = (1280, 800)
PHONE: Size = (390, 844)


def opened(open_window: OpenWindow, account: TenantAccount) -> Window:
    """Open a window without animations."""
    window = open_window(account)
    window.page.call("Emulation.setEmulatedMedia", features=[chromium.STILL])
    return window


def violations(window: Window) -> list[str]:
    """Return the accessibility violations that axe finds."""
    window.evaluate(AXE.read_text() + "; 0")
    texts: list[str] = window.evaluate(_VIOLATIONS)
    return texts


def take_pictures(
    window: Window, folder: Path, name: str, *, desk: Size = DESK, phone: Size = PHONE
) -> None:
    """Check that the page fits in both themes, in desktop and phone size, and take screenshots if
    they are kept.
    """
    for size, (width, height) in (("desk", desk), ("phone", phone)):
        for theme in ("light", "dark"):
            window.page.set_screen(width=width, height=height, dark=theme == "dark")
            if os.environ.get(PICTURES_VARIABLE):
                window.page.capture(folder / f"{name}-{size}-{theme}.png")
            assert window.evaluate(_FITS), (name, size)
