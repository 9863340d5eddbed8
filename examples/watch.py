"""Show a live query in the terminal: the start of its result, then a line for each change.

    python -m examples.watch todos --filter '{"done": false}' --sort rank --limit 10

URL and key come from the options, or from RILLBASE_URL and RILLBASE_KEY. When the connection
breaks, the program reconnects and resumes, with nothing lost or repeated.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.text import Text
from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.sync.client import connect

Frame = dict[str, Any]

RECONNECT_S = 1.0
#: Documents of a result that are printed.
ROWS = 10
STYLES = {
    "add": ("+", "green"),
    "change": ("~", "yellow"),
    "changeIndex": ("↕", "cyan"),
    "remove": ("-", "red"),
}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m examples.watch", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("collection")
    parser.add_argument("--filter", default="{}", help="the filter, as in POST query, as JSON")
    parser.add_argument("--sort", default="", help="a field, -field, or JSON as in POST query")
    parser.add_argument("--offset", type=int, default=0)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--url", default=os.environ.get("RILLBASE_URL", "http://127.0.0.1:8080"))
    parser.add_argument("--key", default=os.environ.get("RILLBASE_KEY", ""))
    parser.add_argument("--changes", type=int, help="exit after this number of changes")
    options = parser.parse_args()
    if not options.key:
        parser.error("a key is required: --key or RILLBASE_KEY")
    return options


def subscription(options: argparse.Namespace, resume: str) -> Frame:
    """Return the message that subscribes."""
    message: Frame = {
        "type": "subscribe",
        "id": "watch",
        "collection": options.collection,
        "filter": json.loads(options.filter),
    }
    if options.sort:
        message["sort"] = sort_of(options.sort)
    if options.offset:
        message["offset"] = options.offset
    if options.limit:
        message["limit"] = options.limit
    if resume:
        message["resume"] = resume
    return message


def sort_of(text: str) -> object:
    """Return a sort that may be given as the name of a field."""
    if text[0] in "[{":
        return json.loads(text)
    return [[text.lstrip("-"), -1 if text.startswith("-") else 1]]


def frames(options: argparse.Namespace, resume: str) -> Iterator[Frame]:
    """Yield the messages of one connection."""
    address = options.url.replace("http", "ws", 1).rstrip("/") + "/v1/realtime"
    with connect(address, subprotocols=["rillbase.v1"], max_size=None) as connection:  # type: ignore[list-item]
        connection.send(json.dumps({"type": "hello", "token": options.key}))
        connection.send(json.dumps(subscription(options, resume)))
        while True:
            yield json.loads(connection.recv())


class Screen:
    """Prints frames as lines."""

    def __init__(self) -> None:
        self._console = Console(highlight=False)
        self.resume = ""
        self.changes = 0
        #: Documents of the result that is being received.
        self._rows = 0

    def show(self, frame: Frame) -> None:
        """Print a frame, and store the position from which to resume."""
        self.resume = frame.get("resume") or self.resume
        match frame["type"]:
            case "result":
                self._result(frame["items"])
            case "ready":
                if self._rows > ROWS:
                    self.note(f"and {self._rows - ROWS:,} more documents", "dim")
                self._rows = 0
                self.note("watching; every change appears here", "bold green")
            case "event":
                self._event(frame)
            case "status" if frame["state"] == "stale":
                self.note("the grid is behind: the result may be outdated", "yellow")
            case "status":
                self.note("caught up", "green")
            case "reset":
                self.resume, self._rows = "", 0
                self.note(f"new result ({frame['reason']})", "yellow")
            case "end" | "error":
                self._give_up(frame["error"])
            case "goodbye":
                self.note("the server is restarting", "yellow")
            case _:
                pass

    def note(self, text: str, style: str) -> None:
        """Print a line that is not a document."""
        self._console.print(Text(f"— {text}", style=style))

    def _result(self, items: list[Frame]) -> None:
        for item in items[: max(0, ROWS - self._rows)]:
            self._line(" ", "dim", item["document"])
        self._rows += len(items)

    def _event(self, frame: Frame) -> None:
        self.changes += 1
        sign, style = STYLES[frame["match"]]
        shown = frame.get("document", {"_id": frame["key"]})
        note = f"v{frame['version']}"
        if frame.get("reason"):
            note += f" {frame['reason']}"
        if frame.get("index") is not None:
            note += f" #{frame['index']}"
        self._line(sign, style, shown, note)

    def _line(self, sign: str, style: str, document: Frame, note: str = "") -> None:
        line = Text(f"{sign} ", style=f"bold {style}")
        line.append(json.dumps(document, ensure_ascii=False), style=style)
        if note:
            line.append(f"  {note}", style="dim")
        self._console.print(line)

    def _give_up(self, problem: Frame | None) -> None:
        if problem is None:
            sys.exit(0)
        self.note(f"{problem['title']}: {problem.get('detail', '')}", "bold red")
        sys.exit(1)


def main() -> None:
    """Watch until Ctrl-C."""
    options, screen = arguments(), Screen()
    while True:
        try:
            for frame in frames(options, screen.resume):
                screen.show(frame)
                if options.changes is not None and screen.changes >= options.changes:
                    return
        except (ConnectionClosed, WebSocketException, OSError) as error:
            screen.note(f"not connected ({type(error).__name__}); reconnecting", "yellow")
            time.sleep(RECONNECT_S)
        except KeyboardInterrupt:
            return


if __name__ == "__main__":
    main()
