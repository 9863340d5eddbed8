"""What one tenant notices while another client is hostile: latencies, memory, failed requests."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import psutil
from websockets.exceptions import WebSocketException

from benchmarks.support import hostile, sockets
from benchmarks.support.hostile import Hostile
from benchmarks.support.report import Report, median, percentile
from benchmarks.support.signed_in import Requests, asking
from benchmarks.support.sockets import Crowd, Heard

#: Rounds without it and with it, in turns.
ROUNDS = 3
#: The web process's memory has to be back after this time.
RELEASED_S, RELEASED_RATIO = 30.0, 1.3
MIB = 1024 * 1024


@dataclass(slots=True)
class Seen:
    """What was seen of one kind of hostile client."""

    alone_ms: list[float] = field(default_factory=list)
    beside_ms: list[float] = field(default_factory=list)
    lost: int = 0
    #: Rounds in which the neighbours could not even connect, subscribe or write.
    broken: int = 0
    cpu_s: float = 0.0
    wall_s: float = 0.0
    before_mib: float = 0.0
    peak_mib: float = 0.0
    after_mib: float = 0.0


def measure(report: Report, crowd: Crowd, other: Hostile, web: psutil.Process) -> None:
    """Measure a crowd of neighbours with a hostile client and without, in turns."""
    seen = Seen()
    _round(seen, crowd, seen.alone_ms)
    seen.before_mib = web.memory_info().rss / MIB
    path = f"/v1/collections/{crowd.collection}/documents?limit=1"
    with asking(crowd.port, crowd.key, path) as requests:
        for number in range(ROUNDS):
            if number:
                _round(seen, crowd, seen.alone_ms)
            with hostile.behaving(other) as used:
                _round(seen, crowd, seen.beside_ms)
                seen.peak_mib = max(seen.peak_mib, web.memory_info().rss / MIB)
            seen.cpu_s += used.cpu_s
            seen.wall_s += used.wall_s
    seen.after_mib = _after(web, RELEASED_RATIO * seen.before_mib)
    _report(report, other.kind, seen, requests)


def _round(seen: Seen, crowd: Crowd, p99_ms: list[float]) -> None:
    begun_s = time.monotonic()
    try:
        heard: Heard = sockets.run(crowd)
    except (OSError, RuntimeError, TimeoutError, AssertionError, WebSocketException):
        seen.broken += 1
    else:
        seen.lost += heard.expected - heard.delivered
        if heard.latencies_ms:
            p99_ms.append(percentile(heard.latencies_ms, 0.99))
            return
    # Nothing came: whoever waited for it waited for as long as the round lasted, at least.
    p99_ms.append(1000 * (time.monotonic() - begun_s))


def _after(web: psutil.Process, enough_mib: float) -> float:
    """Return the least memory until it is little enough, or the time is over."""
    least_mib, end = float("inf"), time.monotonic() + RELEASED_S
    while least_mib > enough_mib and time.monotonic() < end:
        time.sleep(0.5)
        least_mib = min(least_mib, web.memory_info().rss / MIB)
    return least_mib


def _report(report: Report, kind: str, seen: Seen, requests: Requests) -> None:
    alone_ms, beside_ms = median(seen.alone_ms), median(seen.beside_ms)
    report.add(f"{kind}_alone_p99_ms", alone_ms, "ms", "p99 without it, middle of the rounds")
    report.add(f"{kind}_beside_p99_ms", beside_ms, "ms", "p99 beside it")
    what = "p99 beside it ÷ p99 without it"
    report.add(f"{kind}_ratio", beside_ms / alone_ms, "", what, "<= 1.5")
    report.add(f"{kind}_lost", seen.lost, "", "events of the others that did not come", "<= 0")
    what = "rounds in which the others could not go on"
    report.add(f"{kind}_broken", seen.broken, "", what, "<= 0")
    report.add(f"{kind}_requests", requests.sent, "", "requests of a signed-in user")
    report.add(f"{kind}_failed", requests.failed, "", "of these, not answered", "<= 0")
    report.add(f"{kind}_web_mib", seen.before_mib, "MiB", "memory of the web process before it")
    report.add(f"{kind}_web_peak_mib", seen.peak_mib, "MiB", "at the end of a round beside it")
    what = f"after it ÷ before it, within {RELEASED_S:g} s"
    ratio = seen.after_mib / seen.before_mib
    report.add(f"{kind}_web_memory_ratio", ratio, "", what, f"<= {RELEASED_RATIO}")
    if seen.wall_s:
        share = seen.cpu_s / seen.wall_s
        report.add(f"{kind}_attacker_cpu", share, "", "CPU time of the hostile client ÷ time")
