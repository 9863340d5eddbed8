"""Looking at pages: whether they keep anybody out, and how they look."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests import chromium
from tests.console.window import Window

if TYPE_CHECKING:
    from tests.console.conftest import OpenWindow
    from tests.make import MadeTenant

ROOT = Path(__file__).resolve().parents[2]
AXE = ROOT / "console" / "node_modules" / "axe-core" / "axe.min.js"
_VIOLATIONS = """
axe.run(document, {resultTypes: ["violations"]}).then(({violations}) =>
  violations.map(({id, nodes}) => `${id}: ${nodes.map(({target}) => target.join(" ")).join(", ")}`))
"""
#: Nothing is wider than the page, so that nobody has to scroll sideways.
_FITS = "document.documentElement.scrollWidth <= innerWidth"

#: Widths and heights of a screen on a desk, and of one in the hand.
Size = tuple[int, int]
DESK: Size = (1280, 800)
PHONE: Size = (390, 844)


def opened(open_window: OpenWindow, made: MadeTenant) -> Window:
    """Open a window in which nothing moves."""
    window = open_window(made)
    window.page.call("Emulation.setEmulatedMedia", features=[chromium.STILL])
    return window


def violations(window: Window) -> list[str]:
    """Return what axe finds that keeps people out."""
    window.evaluate(AXE.read_text() + "; 0")
    found: list[str] = window.evaluate(_VIOLATIONS)
    return found


def take_pictures(
    window: Window, folder: Path, name: str, *, desk: Size = DESK, phone: Size = PHONE
) -> None:
    """Take pictures of the page in both themes, on a desk and in the hand."""
    for size, (width, height) in (("desk", desk), ("phone", phone)):
        for theme in ("light", "dark"):
            picture = folder / f"{name}-{size}-{theme}.png"
            window.page.picture(picture, width=width, height=height, dark=theme == "dark")
            assert window.evaluate(_FITS), (name, size)
