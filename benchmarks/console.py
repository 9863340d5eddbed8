"""The console in a browser: time until it is usable, bytes loaded, smoothness of scrolling.

    python -m benchmarks.console [--quick]

Headless Chromium on the machine that also runs all servers. Pages are opened with an empty cache.
`interactive` is the time at which the grid of a collection shows its rows, the guided start its
button, or the overview its figures, and after which no long task (50 ms) follows for half a second.
For smoothness, a grid of 10,000 rows is scrolled by some rows per frame while documents in it
change; a frame is smooth if it follows the previous one within 1/30 s.
"""

from __future__ import annotations

import argparse
import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import requests

from benchmarks.support.installation import Web, installation, python, service, web
from benchmarks.support.report import Report, median, percentile
from scripts.provision import web_browser
from tests import chromium
from tests.chromium import Page
from tests.waiting import wait_until

_MAKE = """
import json
import django; django.setup()
from documents.models import Collection
from foundation.scope import scoped
from tenants.credentials import sessions
from tenants.models import Quota
from tests.make import make_key, make_session, make_tenant
account = make_tenant(plan="dedicated")
plenty = {"requests_per_s": 1000000, "requests_burst": 1000000}
Quota(tenant=account.tenant, limits=plenty).save(using="staff")
with scoped(tenant_id=account.tenant.id):
    Collection.objects.create(name="rows")
key = make_key(account.tenant, scopes=["documents:read", "documents:write"])
cookie = {"name": sessions.cookie_name(), "value": make_session(account.owner)[0]}
print(json.dumps({"key": key, "slug": account.slug, "cookie": cookie}))
"""

ROWS = 10_000
BATCH = 1_000
CHANGES_PER_S = 50
SMOOTH_MS = 1000 / 30
TIMEOUT_S = 240.0

_LIVE = "document.querySelector('[data-state=live]')"
#: Records long tasks from the start of the page.
_WATCH_TASKS = """
window.longTasks = [];
new PerformanceObserver((list) => {
  for (const task of list.getEntries()) longTasks.push([task.startTime, task.duration]);
}).observe({ type: "longtask", buffered: true });
"""
#: Resolves with the time at which the page was ready and then idle for half a second.
_INTERACTIVE = """
new Promise((resolve) => {
  let there = 0;
  const look = () => {
    const now = performance.now();
    if (there === 0 && document.querySelector(%s)) there = now;
    const [began, took] = longTasks[longTasks.length - 1] ?? [0, 0];
    const since = Math.max(there, began + took);
    if (there > 0 && now - since > 500) resolve(since);
    else setTimeout(look, 10);
  };
  look();
})
"""
_LOADED_BYTES = """
performance.getEntriesByType("resource").filter(({ name }) => name.endsWith(".js"))
  .reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0)
"""
#: Scrolls to the end, which fetches more rows, until all are loaded.
_AT_THE_END = """
((grid) => {
  grid.scrollTop = grid.scrollHeight;
  return document.querySelector("[data-key=r09999]");
})(document.querySelector("[role=grid]"))
"""
#: Scrolls down and up for a while, and resolves with the duration of each frame.
_SCROLL = """
new Promise((resolve) => {
  const grid = document.querySelector("[role=grid]");
  const end = performance.now() + %d;
  const frames = [];
  let last = 0, step = 170;
  const frame = (now) => {
    if (last > 0) frames.push(now - last);
    last = now;
    grid.scrollTop += step;
    if (grid.scrollTop <= 0 || grid.scrollTop + grid.clientHeight >= grid.scrollHeight - 1)
      step = -step;
    if (now < end) requestAnimationFrame(frame);
    else resolve(frames);
  };
  requestAnimationFrame(frame);
})
"""


@dataclass(frozen=True, slots=True)
class TenantConsole:
    """A tenant's console, and the key that fills its collection."""

    server: Web
    slug: str
    key: str
    cookie: dict[str, str]

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.server.port}"

    def post(self, path: str, body: object, method: str = "POST") -> None:
        headers = {
            "Authorization": f"Bearer {self.key}",
            "Content-Type": "application/json",
        }
        answer = requests.request(
            method,
            self.base + path,
            data=json.dumps(body),
            headers=headers,
            timeout=TIMEOUT_S,
        )
        answer.raise_for_status()


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="finish in about a minute")
    arguments = parser.parse_args()
    opened, seconds = (3, 5) if arguments.quick else (9, 20)
    program = web_browser.find()
    if program is None:
        raise SystemExit("This machine has no Chromium.")
    report = Report("console", {"opened": opened, "scroll_s": seconds, "rows": ROWS})
    with ExitStack() as stack:
        installed = stack.enter_context(installation())
        prepared = json.loads(python(installed, _MAKE))
        server = stack.enter_context(web(installed, "rillbase_server.asgi:application", {}))
        for name in ("relay", "grid"):
            stack.enter_context(service(installed, name, {"RILLBASE_GRID": "processes"}))
        tenant_console = TenantConsole(
            server, prepared["slug"], prepared["key"], prepared["cookie"]
        )
        _fill(tenant_console)
        browser = stack.enter_context(chromium.running(program))
        page = browser.page()
        page.call("Network.enable")
        page.call("Network.setCookie", url=tenant_console.base, **tenant_console.cookie)
        page.call("Page.addScriptToEvaluateOnNewDocument", source=_WATCH_TASKS)
        _until_live(tenant_console, page)
        _measure_opening(report, tenant_console, page, opened)
        _measure_scrolling(report, tenant_console, page, seconds)
    report.finish()


def _fill(tenant_console: TenantConsole) -> None:
    for begin in range(0, ROWS, BATCH):
        inserts = [
            {"insert": {"_id": f"r{n:05}", "title": f"Row {n}", "rank": n, "tags": ["a", "b"]}}
            for n in range(begin, begin + BATCH)
        ]
        tenant_console.post("/v1/collections/rows/documents:bulk", {"operations": inserts})


def _until_live(tenant_console: TenantConsole, page: Page) -> None:
    """Wait until the grid's nodes run: before that, no live query is answered."""
    page.open(f"{tenant_console.base}/t/{tenant_console.slug}/collections/rows")
    wait_until(
        lambda: page.evaluate(f"{_LIVE} !== null"), what="the grid to be live", timeout_s=TIMEOUT_S
    )


def _measure_opening(report: Report, tenant_console: TenantConsole, page: Page, times: int) -> None:
    pages = {
        "overview": ("/overview", ".tile", "the overview"),
        "start": ("/start", "button.main", "the guided start"),
        "grid": ("/collections/rows", "[role=grid] .rows [role=row]", "a grid of 10,000 rows"),
    }
    for name, (path, shows, what) in pages.items():
        moments = []
        for _ in range(times):
            page.call("Network.clearBrowserCache")
            page.open(f"{tenant_console.base}/t/{tenant_console.slug}{path}")
            moments.append(float(page.evaluate(_INTERACTIVE % json.dumps(shows))))
        report.add(f"{name}_interactive", median(moments), "ms", f"{what} is there", "<= 1000")
        loaded = page.evaluate(_LOADED_BYTES) / 1000
        report.add(f"{name}_scripts", loaded, "kB", f"scripts for {what}, compressed", "<= 200")


def _measure_scrolling(
    report: Report, tenant_console: TenantConsole, page: Page, seconds: int
) -> None:
    page.open(f"{tenant_console.base}/t/{tenant_console.slug}/collections/rows")
    page.wait(_LIVE)
    page.wait(_AT_THE_END)
    page.wait(_LIVE)
    page.evaluate("longTasks.length = 0, document.querySelector('[role=grid]').scrollTop = 0")
    with _changing(tenant_console):
        frames = [float(ms) for ms in page.evaluate(_SCROLL % (seconds * 1000))]
    tasks = [float(duration) for _, duration in page.evaluate("longTasks")]
    smooth = sum(ms <= SMOOTH_MS for ms in frames) / len(frames)
    report.add("smooth_frames", 100 * smooth, "%", "of frames within 1/30 s", ">= 95")
    report.add("frames_per_s", len(frames) / (sum(frames) / 1000), "1/s", "while scrolling")
    report.add("frame_p99", percentile(frames, 0.99), "ms", "between frames")
    report.add("long_tasks", sum(tasks) / seconds, "ms/s", "in tasks of more than 50 ms")


@contextmanager
def _changing(tenant_console: TenantConsole) -> Iterator[None]:
    """Change documents all over the grid at this rate per second, while the block runs."""
    over = threading.Event()

    def change() -> None:
        number = 0
        while not over.wait(1 / CHANGES_PER_S):
            number = (number + 997) % ROWS
            path = f"/v1/collections/rows/documents/r{number:05}"
            tenant_console.post(path, {"$inc": {"rank": 1}}, method="PATCH")

    thread = threading.Thread(target=change)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


if __name__ == "__main__":
    main()
