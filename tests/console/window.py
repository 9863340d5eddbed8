"""A window of the console, with the actions of a person in it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.chromium import Page

if TYPE_CHECKING:
    from tests.make import TenantAccount

#: Keys as the DevTools protocol names them: code, and the text that they enter.
KEYS = {
    "Backspace": (8, ""),
    "Enter": (13, "\r"),
    "Escape": (27, ""),
    "ArrowDown": (40, ""),
    "ArrowLeft": (37, ""),
    "ArrowRight": (39, ""),
    " ": (32, " "),
}


#: Violations of the page's policy are collected like its errors.
TELL_OF_REFUSALS = """
addEventListener("securitypolicyviolation", (event) => {
  console.error("refused by the policy:", event.violatedDirective, event.blockedURI);
});
"""


@dataclass
class Window:
    """A page of the browser in which a member has signed in."""

    page: Page
    base: str
    tenant: str

    def open(self, path: str) -> None:
        """Open a page of the tenant, such as `/keys`."""
        self.page.open(f"{self.base}/t/{self.tenant}{path}")

    def wait(self, condition: str) -> None:
        self.page.wait(condition)

    def shows(self, text: str, within: str = "body") -> None:
        """Wait until the text is in view."""
        self.wait(f"({_all(within)}).some((e) => e.innerText.includes({json.dumps(text)}))")

    def is_live(self) -> None:
        """Wait until the grid's footer shows that the query is live."""
        self.wait("document.querySelector('[data-state=live]')")

    def click(self, selector: str, text: str = "") -> None:
        """Click on the first matching element, once it exists and is enabled."""
        fits = f"(e) => e.innerText.includes({json.dumps(text)}) && !e.disabled"
        element = f"({_all(selector)}).find({fits})"
        self.wait(element)
        self.page.evaluate(f"({element}).click()")

    def double_click(self, selector: str) -> None:
        self.click(selector)
        event = "new MouseEvent('dblclick', {bubbles: true})"
        self.page.evaluate(f"document.querySelector({json.dumps(selector)}).dispatchEvent({event})")

    def type(self, selector: str, text: str) -> None:
        """Replace the text of an input."""
        element = f"document.querySelector({json.dumps(selector)})"
        self.wait(element)
        self.page.evaluate(f"{element}.focus(), {element}.select()")
        self.page.call("Input.insertText", text=text)

    def select(self, selector: str, option: str) -> None:
        """Choose an option of a select box by its value."""
        element = f"document.querySelector({json.dumps(selector)})"
        self.wait(
            f"{element} && [...{element}.options].some((o) => o.value === {json.dumps(option)})"
        )
        self.page.evaluate(
            f"{element}.value = {json.dumps(option)},"
            f"{element}.dispatchEvent(new Event('change', {{bubbles: true}}))"
        )

    def write(self, editor: str, text: str) -> None:
        """Replace the text of an editor, which is in a shadow root."""
        content = f"document.querySelector({json.dumps(editor)})?.shadowRoot?.querySelector"
        self.wait(f"{content}('.cm-content')")
        self.page.evaluate(f"{content}('.cm-content').focus()")
        self.press("a", ctrl=True)
        self.press("Backspace")
        # The editor is cleared with the next frame, and accepts text from then on.
        self.page.evaluate(
            "new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)))"
        )
        self.page.call("Input.insertText", text=text)

    def choose_file(self, selector: str, file: Path) -> None:
        """Choose a file, as the browser's own dialogue does."""
        expression = f"document.querySelector({json.dumps(selector)})"
        self.wait(expression)
        element = self.page.call("Runtime.evaluate", expression=expression)["result"]["objectId"]
        self.page.call("DOM.setFileInputFiles", objectId=element, files=[str(file)])

    def hand_over(self, file: Path, action: str) -> None:
        """Choose a file in a dialog, and click the button."""
        self.choose_file("dialog input[type=file]", file)
        self.shows(file.name, "dialog .import-file")
        self.click("dialog button.main", action)

    def press(self, key: str, *, ctrl: bool = False) -> None:
        code, text = KEYS[key] if key in KEYS else (ord(key.upper()), "" if ctrl else key)
        event = {"key": key, "windowsVirtualKeyCode": code, "modifiers": 2 if ctrl else 0}
        down = {**event, "text": text} if text else event
        self.page.call("Input.dispatchKeyEvent", type="keyDown", **down)
        self.page.call("Input.dispatchKeyEvent", type="keyUp", **event)

    def texts(self, selector: str) -> list[str]:
        texts: list[str] = self.page.evaluate(f"({_all(selector)}).map((e) => e.innerText)")
        return texts

    def evaluate(self, expression: str) -> Any:
        return self.page.evaluate(expression)

    @property
    def complaints(self) -> list[str]:
        """The errors of the page, including violations of its policy."""
        return self.page.complaints


def sign_in(page: Page, base: str, account: TenantAccount, token: str) -> Window:
    """Give a page the session's cookie, as signing in does."""
    # Models can be imported once Django is set up.
    from tenants.credentials import sessions

    page.call("Page.addScriptToEvaluateOnNewDocument", source=TELL_OF_REFUSALS)
    page.call("Network.setCookie", name=sessions.cookie_name(), value=token, url=base)
    return Window(page, base, account.slug)


def _all(selector: str) -> str:
    return f"[...document.querySelectorAll({json.dumps(selector)})]"
