"""Measures one tenant while another client attacks: latencies, memory, failed requests."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from http import HTTPStatus

import psutil
from websockets.exceptions import WebSocketException

from benchmarks.support import hostile, sockets
from benchmarks.support.hostile import Hostile
from benchmarks.support.report import Report, median, percentile
from benchmarks.support.signed_in import Requests, asking
from benchmarks.support.sockets import Crowd, SubscriberResults

#: Rounds with the attack, each after one without it.
ROUNDS = 3
#: The web process must release its memory within this time.
RELEASED_S, RELEASED_RATIO = 30.0, 1.3
MIB = 1024 * 1024


@dataclass(slots=True)
class Rounds:
    """The neighbours' rounds with the attack, or those without it."""

    p99_ms: list[float] = field(default_factory=list)
    lost: int = 0
    #: Rounds in which the neighbours could not even connect, subscribe or write.
    broken: int = 0


@dataclass(slots=True)
class AttackFigures:
    """The measurements of one kind of attack."""

    alone: Rounds = field(default_factory=Rounds)
    beside: Rounds = field(default_factory=Rounds)
    cpu_s: float = 0.0
    wall_s: float = 0.0
    responses: Counter[int] = field(default_factory=Counter)
    before_mib: float = 0.0
    peak_mib: float = 0.0
    after_mib: float = 0.0


def measure(report: Report, crowd: Crowd, other: Hostile, web: psutil.Process) -> None:
    """Measure neighbours in alternating rounds, with the attack and without."""
    figures = AttackFigures()
    _round(figures.alone, crowd)
    figures.before_mib = web.memory_info().rss / MIB
    path = f"/v1/collections/{crowd.collection}/documents?limit=1"
    with asking(crowd.port, crowd.key, path) as requests:
        for number in range(ROUNDS):
            if number:
                _round(figures.alone, crowd)
            with hostile.behaving(other) as used:
                _round(figures.beside, crowd)
                figures.peak_mib = max(figures.peak_mib, web.memory_info().rss / MIB)
            figures.cpu_s += used.cpu_s
            figures.wall_s += used.wall_s
            figures.responses += used.responses
    figures.after_mib = _after(web, RELEASED_RATIO * figures.before_mib)
    add_figures(report, other.kind, figures, requests)


def _round(rounds: Rounds, crowd: Crowd) -> None:
    begun_s = time.monotonic()
    try:
        result: SubscriberResults = sockets.run(crowd)
    except (OSError, RuntimeError, TimeoutError, AssertionError, WebSocketException):
        rounds.broken += 1
    else:
        rounds.lost += result.expected - result.delivered
        if result.latencies_ms:
            rounds.p99_ms.append(percentile(result.latencies_ms, 0.99))
            return
    # No event arrived: count the length of the round, a lower bound of the latency.
    rounds.p99_ms.append(1000 * (time.monotonic() - begun_s))


def _after(web: psutil.Process, enough_mib: float) -> float:
    """Return the lowest memory until it is low enough or the time is up."""
    least_mib, end = float("inf"), time.monotonic() + RELEASED_S
    while least_mib > enough_mib and time.monotonic() < end:
        time.sleep(0.5)
        least_mib = min(least_mib, web.memory_info().rss / MIB)
    return least_mib


def add_figures(report: Report, kind: str, figures: AttackFigures, requests: Requests) -> None:
    """Report what was measured; only rounds with the attack have to meet the goals."""
    alone, beside = figures.alone, figures.beside
    alone_ms, beside_ms = median(alone.p99_ms), median(beside.p99_ms)
    report.add(f"{kind}_alone_p99_ms", alone_ms, "ms", "p99 without it, median of the rounds")
    report.add(f"{kind}_beside_p99_ms", beside_ms, "ms", "p99 beside it")
    what = "p99 beside it ÷ p99 without it"
    report.add(f"{kind}_ratio", beside_ms / alone_ms, "", what, "<= 1.5")
    what = "events that neighbours did not receive during it"
    report.add(f"{kind}_lost", beside.lost, "", what, "<= 0")
    what = "rounds with it in which the neighbours could not continue"
    report.add(f"{kind}_broken", beside.broken, "", what, "<= 0")
    what = "events not received, and rounds not continued, without it"
    report.add(f"{kind}_alone_failures", alone.lost + alone.broken, "", what)
    report.add(f"{kind}_requests", requests.sent, "", "requests of a signed-in user")
    report.add(f"{kind}_failed", requests.failed, "", "of these, not answered", "<= 0")
    report.add(f"{kind}_web_mib", figures.before_mib, "MiB", "memory of the web process before it")
    report.add(f"{kind}_web_peak_mib", figures.peak_mib, "MiB", "at the end of a round with it")
    what = f"after it ÷ before it, within {RELEASED_S:g} s"
    ratio = figures.after_mib / figures.before_mib
    report.add(f"{kind}_web_memory_ratio", ratio, "", what, f"<= {RELEASED_RATIO}")
    if figures.wall_s:
        share = figures.cpu_s / figures.wall_s
        report.add(f"{kind}_attacker_cpu", share, "", "CPU time of the hostile client ÷ time")
    if kind in hostile.CALLS:
        rejected = sum(
            n for status, n in figures.responses.items() if status >= HTTPStatus.BAD_REQUEST
        )
        accepted = figures.responses.total() - figures.responses[0] - rejected
        report.add(f"{kind}_attacker_calls", accepted, "", "its calls that succeeded", ">= 1")
        report.add(f"{kind}_attacker_rejected", rejected, "", "those that were rejected")
