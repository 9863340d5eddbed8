"""The machine's Chromium in headless mode, driven over its DevTools protocol."""

from __future__ import annotations

import base64
import json
import subprocess
import tempfile
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from tests.waiting import wait_until

TIMEOUT_S = 60.0
#: Disables animations, so that pages do not change between two observations.
STILL = {"name": "prefers-reduced-motion", "value": "reduce"}
OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--hide-scrollbars",
    "--remote-debugging-port=0",
)


class Page:
    """One page."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._number = 0
        self._answers: dict[int, dict[str, Any]] = {}
        self._more = threading.Condition()
        #: How often a document has loaded.
        self._loads = 0
        self._bindings: dict[str, Callable[[str], None]] = {}
        #: Errors that the page has reported.
        self.complaints: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.call("Runtime.enable")
        self.call("Page.enable")

    def call(self, method: str, **parameters: object) -> dict[str, Any]:
        """Call a method of the protocol and return its result."""
        with self._more:
            self._number += 1
            number = self._number
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        with self._more:
            assert self._more.wait_for(lambda: number in self._answers, TIMEOUT_S), method
            answer = self._answers.pop(number)
        assert "error" not in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def open(self, url: str) -> None:
        self.call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete'")

    def reload(self) -> None:
        """Load the page once more, as its reload button does, and wait until it has loaded."""
        with self._more:
            before = self._loads
        self.call("Page.reload")
        with self._more:
            assert self._more.wait_for(lambda: self._loads > before, TIMEOUT_S), "reload"

    def back(self) -> None:
        """Go back in the history, as the browser's button does."""
        self.evaluate("history.back()")

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression; promises are awaited."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait(self, expression: str) -> None:
        """Wait until the expression is true."""
        wait_until(
            lambda: bool(self.evaluate(f"Boolean({expression})")),
            what=f"{expression} (complaints: {self.complaints})",
            timeout_s=TIMEOUT_S,
        )

    def bind(self, name: str, take: Callable[[str], None]) -> None:
        """Provide the function `name(text)` to every document that the page opens."""
        self._bindings[name] = take
        self.call("Runtime.addBinding", name=name)

    def set_screen(self, *, width: int, height: int, dark: bool = False) -> None:
        """Lay the page out for a screen, without animations."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme, STILL])

    def picture(self, file: Path, *, width: int, height: int, dark: bool = False) -> None:
        """Save a screenshot of the page on a screen of this size."""
        self.set_screen(width=width, height=height, dark=dark)
        self.capture(file)

    def capture(self, file: Path) -> None:
        """Save a screenshot of the page once it no longer changes."""
        taken = self.call("Page.captureScreenshot", format="png")
        file.write_bytes(base64.b64decode(taken["data"]))

    def close(self) -> None:
        self._socket.close()
        self._reader.join()

    def _read(self) -> None:
        try:
            for text in self._socket:
                self._take(json.loads(text))
        except ConnectionClosed:
            return

    def _take(self, message: dict[str, Any]) -> None:
        if "id" in message:
            with self._more:
                self._answers[message["id"]] = message
                self._more.notify_all()
            return
        parameters = message.get("params", {})
        match message["method"]:
            case "Page.loadEventFired":
                with self._more:
                    self._loads += 1
                    self._more.notify_all()
            case "Runtime.bindingCalled":
                self._bindings[parameters["name"]](parameters["payload"])
            case "Runtime.exceptionThrown":
                self.complaints.append(str(parameters["exceptionDetails"]))
            case "Runtime.consoleAPICalled" if parameters["type"] == "error":
                self.complaints.append(str(parameters["args"]))
            case _:
                pass


class Browser:
    """A running browser."""

    def __init__(self, port: int) -> None:
        self._address = f"http://127.0.0.1:{port}/json"
        #: The browser's name of each, and what ends the connection to it.
        self._pages: list[tuple[str, ExitStack]] = []

    def page(self) -> Page:
        """Open an empty page."""
        asked = urllib.request.Request(f"{self._address}/new?about:blank", method="PUT")
        with urllib.request.urlopen(asked, timeout=TIMEOUT_S) as answer:
            opened = json.load(answer)
        address, stack = opened["webSocketDebuggerUrl"], ExitStack()
        self._pages.append((opened["id"], stack))
        page = Page(stack.enter_context(connect(address, max_size=None, compression=None)))
        stack.callback(page.close)
        return page

    def close_pages(self) -> None:
        """Close all pages, which would otherwise go on with their timers and subscriptions."""
        while self._pages:
            name, stack = self._pages.pop()
            stack.close()
            urllib.request.urlopen(f"{self._address}/close/{name}", timeout=TIMEOUT_S).close()


@contextmanager
def running(program: str) -> Iterator[Browser]:
    """Start the browser with a new profile, and stop it when the block ends."""
    with tempfile.TemporaryDirectory(prefix="rb-browser-", ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [program, *OPTIONS, f"--user-data-dir={profile}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            port_file = Path(profile, "DevToolsActivePort")
            wait_until(
                lambda: port_file.exists() and "\n" in port_file.read_text(),
                what="the browser",
                timeout_s=TIMEOUT_S,
            )
            browser = Browser(int(port_file.read_text().splitlines()[0]))
            try:
                yield browser
            finally:
                browser.close_pages()
        finally:
            process.terminate()
            process.wait(timeout=TIMEOUT_S)
