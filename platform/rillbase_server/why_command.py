"""``manage.py why``: why did (not) this client get this change?

    python manage.py why                                    lists what is watched now
    python manage.py why SUBSCRIPTION DOCUMENT              the newest version of the document
    python manage.py why SUBSCRIPTION DOCUMENT --version 3  that version

It uses the server's API with an API key. It needs neither Django nor the database, so it works
wherever the server is reachable.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from rich.console import Console
from rich.table import Table
from rich.text import Text

from rillbase_server.launcher.options import NAME

TIMEOUT_S = 30.0
SIGNS = {
    "passed": ("✓", "green"),
    "stopped": ("✗", "bold red"),
    "waiting": ("…", "bold yellow"),
    "unknown": ("?", "dim"),
}
FAILED = 1


class WhyCommandError(Exception):
    """The command failed; the message says why."""


def main(arguments: Sequence[str]) -> int:
    """Run the command; return the exit code."""
    options = _parser().parse_args(arguments)
    console = Console(highlight=False)
    try:
        if options.subscription is None:
            _list(console, _get(options, "subscriptions")["items"], as_json=options.json)
        else:
            _print_trace(console, _get(options, _why(options)), as_json=options.json)
    except WhyCommandError as error:
        sys.stderr.write(f"Error: {error}\n")
        return FAILED
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"{NAME} why", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("subscription", nargs="?", help="id of the subscription, as listed")
    parser.add_argument(
        "document", nargs="?", help="the document's `_id`, as in the path of a document"
    )
    parser.add_argument("--version", type=int, help="version of the document (default: the newest)")
    parser.add_argument("--tenant", default=os.environ.get("RILLBASE_TENANT", "demo"))
    parser.add_argument("--url", default=os.environ.get("RILLBASE_URL", "http://127.0.0.1:8080"))
    parser.add_argument(
        "--key",
        default=os.environ.get("RILLBASE_KEY", ""),
        help="a key with the scope `admin`, or a personal token (default: RILLBASE_KEY)",
    )
    parser.add_argument("--json", action="store_true", help="print the server's response as JSON")
    parser.set_defaults(parser=parser)
    return parser


def _why(options: argparse.Namespace) -> str:
    if options.document is None:
        options.parser.error("specify the document, too")
    query = {"document": options.document}
    if options.version is not None:
        query["version"] = options.version
    return f"subscriptions/{quote(options.subscription, safe='')}/why?{urlencode(query)}"


def _get(options: argparse.Namespace, path: str) -> dict[str, Any]:
    if not options.key:
        options.parser.error("a key is required: --key or RILLBASE_KEY")
    if urlsplit(options.url).scheme not in ("http", "https"):
        options.parser.error("--url must be an http or https address")
    address = f"{options.url.rstrip('/')}/api/v1/tenants/{quote(options.tenant, safe='')}/{path}"
    request = urllib.request.Request(  # noqa: S310 -- the scheme was checked
        address, headers={"Authorization": f"Bearer {options.key}"}
    )
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:  # noqa: S310
            answer_body: dict[str, Any] = json.load(answer)
    except urllib.error.HTTPError as error:
        raise WhyCommandError(_problem(error)) from None
    except (OSError, ValueError) as error:
        raise WhyCommandError(f"{options.url} does not respond: {error}") from None
    return answer_body


def _problem(refused: urllib.error.HTTPError) -> str:
    try:
        problem = json.load(refused)
        return f"{problem.get('detail') or problem['title']} ({problem['code']})"
    except (OSError, ValueError, KeyError):
        return f"the server responded with {refused.code}"


def _list(console: Console, items: list[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps(items, indent=2) + "\n")
        return
    if not items:
        console.print("There are no live subscriptions.")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for head in ("subscription", "user", "watches", "state", "events"):
        table.add_column(head, overflow="fold" if head == "subscription" else "ellipsis")
    for item in items:
        source = item.get("collection") or item.get("topic") or item.get("aggregate") or ""
        watches = f"{source} {json.dumps(item['query'].get('filter', {}))}"
        row = (item["id"], item["user"], watches, item["state"], str(item["events"]))
        table.add_row(*map(Text, row))
    console.print(table)


def _time(step: dict[str, Any]) -> str:
    time = (step["at"] or "")[11:23]
    return f"about {time}" if step["facts"].get("time_is_approximate") else time


def _print_trace(console: Console, trace: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps(trace, indent=2) + "\n")
        return
    document = json.dumps(trace["document"])
    console.print(Text(f"{trace['collection']} {document}, version {trace['version']}", "bold"))
    console.print()
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, style="bold")
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for step in trace["steps"]:
        sign, style = SIGNS[step["state"]]
        table.add_row(Text(sign, style), Text(step["title"]), _time(step), Text(step["detail"]))
    console.print(table)
    console.print()
    console.print(Text(trace["summary"], "bold"))
