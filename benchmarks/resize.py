"""How long subscriptions are stale while the grid is resized and writes continue.

    python -m benchmarks.resize [--sizes 4x1,2x2,2x1] [--queries 1000] [--writes 1000] [--quick]

Every live query covers a separate shard of the documents, over a WebSocket; a size is write
partitions x query partitions. For each one `manage.py resize_grid` starts another grid beside the
current one, which takes over once all its nodes are ready. Writes continue at the same rate. At the
end, all rows are compared with the writes, and none may have arrived twice.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from dataclasses import dataclass

from benchmarks.support.live_stack import Stack, live_stack, until
from benchmarks.support.report import Report
from benchmarks.support.watchers import Tally, Watchers

TIMEOUT_S = 120.0
#: A pause before the first change and after each, so that each starts with a settled grid.
SETTLED_S = 5.0


@dataclass(frozen=True, slots=True)
class Knobs:
    """The extent of the measurement."""

    queries: int
    documents: int
    writes: float
    sizes: list[tuple[int, int]]


def main() -> None:
    """Measure and report."""
    knobs = _knobs()
    params: dict[str, object] = {
        "queries": knobs.queries,
        "documents": knobs.documents,
        "writes_per_s": knobs.writes,
        "sizes": knobs.sizes,
    }
    report = Report("resize", params)
    with live_stack("processes") as stack:
        asyncio.run(_measure(report, stack, knobs))
    report.finish()


def _knobs() -> Knobs:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="one resize, a fifth of everything")
    parser.add_argument("--queries", type=int, help="live queries")
    parser.add_argument("--documents", type=int, help="documents of the collection")
    parser.add_argument("--writes", type=float, help="writes a second")
    parser.add_argument("--sizes", help="one after the other")
    arguments = parser.parse_args()
    less = 5 if arguments.quick else 1
    sizes = arguments.sizes or ("2x2" if arguments.quick else "4x1,2x2,2x1")
    return Knobs(
        queries=arguments.queries or 1_000 // less,
        documents=arguments.documents or 10_000 // less,
        writes=arguments.writes or 1_000 / less,
        sizes=[_size(text) for text in sizes.split(",")],
    )


def _size(text: str) -> tuple[int, int]:
    write, query = text.split("x")
    return int(write), int(query)


async def _measure(report: Report, stack: Stack, knobs: Knobs) -> None:
    await asyncio.to_thread(stack.fill, knobs.documents, knobs.queries)
    watchers = Watchers(stack.web.port, stack.key, "held", knobs.queries)
    await watchers.start()
    try:
        if not await until(lambda: watchers.whole, TIMEOUT_S):
            raise RuntimeError("the queries did not become live")
        watchers.tally = Tally()
        began_s = time.monotonic()
        watchers.write(knobs.writes)
        for size in knobs.sizes:
            await asyncio.sleep(SETTLED_S)
            await _resize(report, stack, watchers, size)
        await asyncio.sleep(SETTLED_S)
        rate = watchers.written / (time.monotonic() - began_s)
        written = await watchers.stop_writing()
        await until(lambda: watchers.whole, TIMEOUT_S)
    finally:
        await watchers.close()
    tally = watchers.tally
    report.add("writes_per_s", rate, "/s", "acknowledged, throughout", f">= {0.95 * knobs.writes}")
    report.add("written", written, "", "documents")
    report.add("longest_stale_s", tally.longest_s, "s", "that a subscription was not live", "<= 2")
    report.add("stale", tally.stale, "", "times that a subscription was reported stale")
    report.add("resets", tally.resets, "", "subscriptions that started over")
    report.add("lost", watchers.missing, "", "documents not received", "<= 0")
    report.add("repeated", tally.repeated, "", "documents received twice", "<= 0")


async def _resize(report: Report, stack: Stack, watchers: Watchers, size: tuple[int, int]) -> None:
    before = watchers.tally
    watchers.tally = Tally()
    name = f"{size[0]}x{size[1]}"
    print(f"{name} …", file=sys.stderr)
    began_s = time.monotonic()
    await asyncio.to_thread(stack.resize, *size)
    took_s = time.monotonic() - began_s
    during = watchers.tally
    what = "from the command until only the new grid served"
    report.add(f"{name}_s", took_s, "s", what)
    report.add(f"{name}_longest_stale_s", during.longest_s, "s", "that a subscription was not live")
    watchers.tally = before.joined(during)


if __name__ == "__main__":
    main()
