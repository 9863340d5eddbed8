"""How long anybody is stale while the grid gets another size and writes go on.

    python -m benchmarks.resize [--sizes 4x1,2x2,2x1] [--queries 1000] [--writes 1000] [--quick]

Every query watches its own shard of the documents over a WebSocket; a size is write partitions x
query partitions. For each one `manage.py resize_grid` brings up another grid beside the one that
serves, which takes over once all its nodes watch. Writes go on at the same rate all the time. At
the end every watcher's rows are compared with what was written, and none may have come twice.
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

PATIENCE_S = 120.0
#: Before the first change and after each, so that each begins with a grid that has settled.
SETTLED_S = 5.0


@dataclass(frozen=True, slots=True)
class Knobs:
    """How much is measured."""

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
    parser.add_argument("--quick", action="store_true", help="one change, a fifth of everything")
    parser.add_argument("--queries", type=int, help="live queries")
    parser.add_argument("--documents", type=int, help="documents of the collection")
    parser.add_argument("--writes", type=float, help="writes a second")
    parser.add_argument("--sizes", help="one after the other")
    given = parser.parse_args()
    less = 5 if given.quick else 1
    sizes = given.sizes or ("2x2" if given.quick else "4x1,2x2,2x1")
    return Knobs(
        queries=given.queries or 1_000 // less,
        documents=given.documents or 10_000 // less,
        writes=given.writes or 1_000 / less,
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
        if not await until(lambda: watchers.whole, PATIENCE_S):
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
        await until(lambda: watchers.whole, PATIENCE_S)
    finally:
        await watchers.close()
    tally = watchers.tally
    report.add(
        "writes_per_s", rate, "/s", "acknowledged, all the time", f">= {0.95 * knobs.writes}"
    )
    report.add("written", written, "", "documents")
    report.add("longest_stale_s", tally.longest_s, "s", "that anybody was not live", "<= 2")
    report.add("stale", tally.stale, "", "times that a watcher was told to be stale")
    report.add("resets", tally.resets, "", "watchers that began anew")
    report.add("lost", watchers.missing, "", "documents unknown to their watchers", "<= 0")
    report.add("repeated", tally.repeated, "", "documents that came twice", "<= 0")


async def _resize(report: Report, stack: Stack, watchers: Watchers, size: tuple[int, int]) -> None:
    before = watchers.tally
    watchers.tally = Tally()
    name = f"{size[0]}x{size[1]}"
    print(f"{name} …", file=sys.stderr)
    began_s = time.monotonic()
    await asyncio.to_thread(stack.resize, *size)
    took_s = time.monotonic() - began_s
    during = watchers.tally
    what = "from the command until the new grid served alone"
    report.add(f"{name}_s", took_s, "s", what)
    report.add(f"{name}_longest_stale_s", during.longest_s, "s", "that anybody was not live")
    watchers.tally = before.joined(during)


if __name__ == "__main__":
    main()
