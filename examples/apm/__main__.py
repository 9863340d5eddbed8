"""Requests arrive at customers' endpoints; their latency is monitored, with an alert when it
doubles.

    RILLBASE_KEY=rbk_dev_… python -m examples.apm
    RILLBASE_KEY=rbk_dev_… python -m examples.apm --seconds 40 --picture apm.svg

Every request is an event. It is counted and timed in buckets of five minutes, for its endpoint, its
application and its customer at once. Two subscriptions deliver the rows as they change; each row
includes the previous bucket, and an average that has doubled is an alert. Time is simulated: it
starts some hours ago and passes quickly until the present. The key needs the scope `admin` to
create the aggregate, unless it exists.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from requests import RequestException
from rich.console import Console
from rich.live import Live
from rich.text import Text

from examples.apm import picture, terminal
from examples.apm.board import series_of, traffic_of
from examples.apm.rillbase import CallRejected, Line, SubscribedRows, opened
from examples.apm.world import MINUTE_MS, World

FRAME_S = 0.25
SETTLE_S = 20.0
BY_ENDPOINT = ["customer", "app", "endpoint", "at"]
BY_CUSTOMER = ["customer", "at"]
#: Rows that a subscription may hold.
MOST_ROWS = 10_000


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m examples.apm", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--hours", type=float, default=3.0, help="how long ago the data starts")
    parser.add_argument("--speed", type=float, default=240.0, help="simulated seconds per second")
    parser.add_argument("--seconds", type=float, help="exit after this number of seconds")
    parser.add_argument("--picture", type=Path, help="save the final state as an SVG")
    parser.add_argument("--aggregate", default="requests_5m")
    parser.add_argument("--seed", type=int, default=4, help="seed for endpoints and incidents")
    parser.add_argument("--url", default=os.environ.get("RILLBASE_URL", "http://127.0.0.1:8080"))
    parser.add_argument("--key", default=os.environ.get("RILLBASE_KEY", ""))
    options = parser.parse_args()
    if not options.key:
        parser.error("a key is required: --key or RILLBASE_KEY")
    return options


def main() -> int:
    """Run until the time is over or the user interrupts."""
    options = arguments()
    begins_ms = time.time() * 1000 - options.hours * 60 * MINUTE_MS
    try:
        line = opened(options.url.rstrip("/"), options.key, options.aggregate)
    except (CallRejected, RequestException, OSError) as refused:
        print(f"Rillbase at {options.url}: {refused}", file=sys.stderr)  # noqa: T201
        return 1
    endpoints = _watch(line, "endpoints", BY_ENDPOINT, begins_ms)
    customers = _watch(line, "customers", BY_CUSTOMER, begins_ms)
    try:
        run(World.begun(begins_ms, options.seed), line, (endpoints, customers), options)
        settle(line, endpoints)
    except KeyboardInterrupt:
        pass
    except (CallRejected, RequestException) as refused:
        line.error = str(refused)
    finally:
        line.close()
    if options.picture is not None:
        n_updates = endpoints.n_updates + customers.n_updates
        series = series_of(endpoints.rows.values())
        options.picture.write_text(picture.drawn(series, line.added, n_updates))
        print(f"{options.picture}: {line.added} events, {n_updates} row updates")  # noqa: T201
    if line.error:
        print(line.error, file=sys.stderr)  # noqa: T201
    return 1 if line.error else 0


def _watch(line: Line, name: str, group_by: list[str], begins_ms: float) -> SubscribedRows:
    return line.watch(
        name,
        group_by=group_by,
        measures=["count", "latency"],
        compare="previous",
        limit=MOST_ROWS,
        **{"from": round(begins_ms)},
    )


def run(
    world: World,
    line: Line,
    watched: tuple[SubscribedRows, SubscribedRows],
    options: argparse.Namespace,
) -> None:
    """Let time pass, and show it."""
    console, began_s = Console(), time.monotonic()
    begins_ms = world.now_ms
    endpoints, customers = watched
    screen = console.is_terminal
    with Live(console=console, screen=screen, auto_refresh=False) as live:
        while not line.error:
            passed_s = time.monotonic() - began_s
            played_ms = begins_ms + passed_s * 1000 * options.speed
            events = list(world.step(min(played_ms, time.time() * 1000)))
            if events:
                line.add(events)
            if screen and endpoints.rows:
                series = series_of(list(endpoints.rows.values()))
                traffic = traffic_of(list(customers.rows.values()))
                foot = _foot(world, line, endpoints.n_updates + customers.n_updates)
                live.update(terminal.drawn(series, traffic, foot, console.height), refresh=True)
            if options.seconds is not None and passed_s > options.seconds:
                return
            time.sleep(FRAME_S)


def settle(line: Line, rows: SubscribedRows) -> None:
    """Wait until everything that was added has been delivered."""
    patience_s = time.monotonic() + SETTLE_S
    while not line.error and time.monotonic() < patience_s:
        if sum(row["count"] for row in list(rows.rows.values())) >= line.added:
            return
        time.sleep(FRAME_S)


def _foot(world: World, line: Line, n_updates: int) -> Text:
    moment = time.strftime("%H:%M", time.gmtime(world.now_ms / 1000))
    text = Text(justify="center")
    for shown, what in (
        (moment, "UTC"),
        (f"{line.added:,}", "events"),
        (f"{n_updates:,}", "row updates"),
    ):
        text.append(f" {shown} ", "bold #ffa94d")
        text.append(what + "  ", "#c9d1d9")
    return text


if __name__ == "__main__":
    sys.exit(main())
