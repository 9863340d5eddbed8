"""Record the shop example in a browser as an animated picture for the README.

    python -m scripts.record_shop --file docs/figures/shop.svg

Starts an installation, or uses the running one that wrote the ready file. Needs Chromium. The
animation is an SVG whose frames are pictures of the page, so that it needs no other program.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scripts.installation import installation
from scripts.provision import web_browser
from tests import chromium
from tests.chromium import Page

WIDTH, HEIGHT, SCALE = 900, 780, 1.3
FRAMES, FRAME_S = 32, 0.25
QUALITY = 60
MAX_BYTES = 2_000_000
#: The orders that fill the page before the recording starts.
FILLED_S = 65.0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m scripts.record_shop", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--ready-file", type=Path, help="as written by `manage.py up`")
    parser.add_argument("--file", type=Path, required=True)
    return parser.parse_args()


def main() -> int:
    options = arguments()
    program = web_browser.find()
    if program is None:
        print("this machine has no Chromium", file=sys.stderr)
        return 1
    with (
        installation(options.ready_file) as ready,
        shop(ready) as address,
        chromium.running(program) as browser,
    ):
        frames = record(browser.page(), address)
    svg = animation(frames)
    if len(svg) > MAX_BYTES:
        print(f"{len(svg):,} bytes are more than {MAX_BYTES:,}", file=sys.stderr)
        return 1
    options.file.write_text(svg)
    print(f"{options.file}: {len(frames)} frames, {len(svg):,} bytes")
    return 0


@contextmanager
def shop(ready: dict[str, str]) -> Iterator[str]:
    """Run the example, and yield its page's address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "examples.browser", "shop", "--port", "0"],
        env={**os.environ, "RILLBASE_URL": ready["url"], "RILLBASE_KEY": ready["api_key"]},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        line = "" if process.stdout is None else process.stdout.readline()
        yield next(word for word in line.split() if word.startswith("http"))
    finally:
        process.terminate()
        process.wait()


def record(page: Page, address: str) -> list[str]:
    """Return frames at a steady rate, each as base64."""
    size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": SCALE, "mobile": False}
    page.call("Emulation.setDeviceMetricsOverride", **size)
    page.open(address)
    time.sleep(FILLED_S)
    frames, start = [], time.monotonic()
    for number in range(FRAMES):
        time.sleep(max(0.0, start + number * FRAME_S - time.monotonic()))
        screenshot = page.call("Page.captureScreenshot", format="webp", quality=QUALITY)
        frames.append(screenshot["data"])
    return frames


def animation(frames: list[str]) -> str:
    """Return an SVG that shows one frame after the other, again and again."""
    total = len(frames) * FRAME_S
    share = 100 / len(frames)
    images = "".join(
        f'<image width="{WIDTH}" height="{HEIGHT}" style="animation-delay:{n * FRAME_S:.2f}s" '
        f'href="data:image/webp;base64,{frame}"/>'
        for n, frame in enumerate(frames)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}">'
        "<title>Orders arrive in a shop, and its dashboard follows</title><style>"
        f"image{{opacity:0;animation:show {total}s step-end infinite}}"
        f"image:first-of-type{{opacity:1}}"
        f"@keyframes show{{0%{{opacity:1}}{share:.4f}%{{opacity:0}}}}"
        f"</style>{images}</svg>\n"
    )


if __name__ == "__main__":
    sys.exit(main())
