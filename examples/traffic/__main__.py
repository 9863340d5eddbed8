"""Drivers move through a city and are notified of incidents around them.

    RILLBASE_KEY=rbk_dev_… python -m examples.traffic
    RILLBASE_KEY=rbk_dev_… python -m examples.traffic --seconds 30 --picture traffic.svg

Every driver subscribes to incidents within 420 m: those of the past ten seconds arrive at once, and
those of the next ten seconds are pushed. Incidents are published at their location. The key needs
the scope `admin` to create the topic, unless it exists.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.live import Live

from examples.traffic import picture, terminal
from examples.traffic.rillbase import CallRejected, Line, opened
from examples.traffic.scene import Scene

FRAME_S = 0.1


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m examples.traffic", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--drivers", type=int, default=10, choices=range(1, 101), metavar="N")
    parser.add_argument("--every", type=float, default=1.5, help="seconds between incidents")
    parser.add_argument("--seconds", type=float, help="exit after this number of incidents")
    parser.add_argument("--picture", type=Path, help="save the final state as an SVG")
    parser.add_argument("--topic", default="traffic")
    parser.add_argument("--seed", type=int, default=7, help="seed for the city and its people")
    parser.add_argument("--url", default=os.environ.get("RILLBASE_URL", "http://127.0.0.1:8080"))
    parser.add_argument("--key", default=os.environ.get("RILLBASE_KEY", ""))
    options = parser.parse_args()
    if not options.key:
        parser.error("a key is required: --key or RILLBASE_KEY")
    if options.every <= 0:
        parser.error("--every must be positive")
    return options


def main() -> int:
    """Run until the time is over or the user interrupts."""
    options = arguments()
    try:
        line = opened(options.url.rstrip("/"), options.key, options.topic)
    except (CallRejected, OSError) as refused:
        print(f"Rillbase at {options.url}: {refused}", file=sys.stderr)  # noqa: T201
        return 1
    scene = Scene.create(line, count=options.drivers, every_s=options.every, seed=options.seed)
    try:
        run(scene, line, options.seconds)
    except KeyboardInterrupt:
        pass
    finally:
        line.close()
    if options.picture is not None:
        options.picture.write_text(picture.drawn(scene))
        counts = f"{scene.published} incidents, {scene.n_subscriptions} subscriptions"
        print(f"{options.picture}: {counts}")  # noqa: T201
    return 1 if line.error else 0


def run(scene: Scene, line: Line, seconds: float | None) -> None:
    """Let time pass, and show it."""
    console, began, before = Console(), time.monotonic(), time.monotonic()
    screen = console.is_terminal
    with Live(console=console, screen=screen, auto_refresh=False) as live:
        while not line.error and (seconds is None or time.monotonic() - began < seconds):
            now = time.monotonic()
            scene.step(now - before)
            before = now
            if screen:
                live.update(terminal.drawn(scene, *console.size), refresh=True)
            time.sleep(FRAME_S)


if __name__ == "__main__":
    sys.exit(main())
