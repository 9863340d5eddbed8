"""The board as a picture (SVG): a small chart for each endpoint."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from examples.apm.board import Bucket, Series

COLUMNS, WIDTH, HEIGHT, GAP, EDGE, HEAD = 4, 250.0, 118.0, 14.0, 24.0, 84.0
INK, QUIET, CALM, ALARM, CARD = "#e6edf3", "#8b9bab", "#4cc9f0", "#ff5d5d", "#131c26"
FONT = "font-family='Inter, Segoe UI, Helvetica, Arial, sans-serif'"
CHART_TOP, CHART_BOTTOM, PAD = 44.0, 14.0, 14.0


def drawn(series: Sequence[Series], events: int, n_updates: int) -> str:
    """Return the picture."""
    rows = -(-len(series) // COLUMNS)
    width = 2 * EDGE + COLUMNS * WIDTH + (COLUMNS - 1) * GAP
    height = HEAD + rows * (HEIGHT + GAP) + EDGE
    alerts = sum(len(line.alerts) for line in series)
    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width:.0f} {height:.0f}' {FONT}>",
        _under(),
        f"<rect width='{width:.0f}' height='{height:.0f}' fill='#0b1118'/>",
        _title(width, f"{events:,} events · {n_updates:,} row updates · {alerts} alerts"),
        *(_chart(line, place) for place, line in enumerate(series)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _under() -> str:
    return (
        "<defs><linearGradient id='under' x2='0' y2='1'>"
        f"<stop stop-color='{CALM}' stop-opacity='.35'/>"
        f"<stop offset='1' stop-color='{CALM}' stop-opacity='.02'/></linearGradient></defs>"
    )


def _title(width: float, figures: str) -> str:
    return (
        f"<text x='{EDGE}' y='40' fill='{INK}' font-size='22' font-weight='700'>apm</text>"
        f"<text x='{EDGE}' y='63' fill='{QUIET}' font-size='13'>Average latency of each endpoint, "
        "one point per five minutes; red where it doubled since the previous five minutes.</text>"
        f"<text x='{width - EDGE:.0f}' y='40' fill='{INK}' font-size='14' text-anchor='end'>"
        f"{figures}</text>"
    )


def _chart(series: Series, place: int) -> str:
    x = EDGE + place % COLUMNS * (WIDTH + GAP)
    y = HEAD + place // COLUMNS * (HEIGHT + GAP)
    buckets = series.buckets
    points = _points(buckets)
    line = " ".join(f"{px:.1f},{py:.1f}" for px, py in points)
    floor = HEIGHT - CHART_BOTTOM
    dots = "".join(
        f"<circle cx='{px:.1f}' cy='{py:.1f}' r='8' fill='{ALARM}' fill-opacity='.25'/>"
        f"<circle cx='{px:.1f}' cy='{py:.1f}' r='3.4' fill='{ALARM}'/>"
        for bucket, (px, py) in zip(buckets, points, strict=True)
        if bucket.is_alert
    )
    most = max((bucket.latency_ms for bucket in buckets), default=0.0)
    return (
        f"<g transform='translate({x:.0f} {y:.0f})'>"
        f"<rect width='{WIDTH}' height='{HEIGHT}' rx='12' fill='{CARD}'/>"
        f"<text x='{PAD}' y='24' fill='{INK}' font-size='13' font-weight='600'>"
        f"{escape(series.name)}</text>"
        f"<text x='{WIDTH - PAD}' y='24' fill='{QUIET}' font-size='12' text-anchor='end'>"
        f"to {most:.0f} ms</text>"
        f"<polygon points='{PAD},{floor} {line} {WIDTH - PAD},{floor}' fill='url(#under)'/>"
        f"<polyline points='{line}' fill='none' stroke='{CALM}' stroke-width='2' "
        f"stroke-linejoin='round'/>{dots}</g>"
    )


def _points(buckets: Sequence[Bucket]) -> list[tuple[float, float]]:
    most = max((bucket.latency_ms for bucket in buckets), default=0.0) or 1.0
    step = (WIDTH - 2 * PAD) / max(1, len(buckets) - 1)
    tall = HEIGHT - CHART_TOP - CHART_BOTTOM
    return [
        (PAD + number * step, HEIGHT - CHART_BOTTOM - bucket.latency_ms / most * tall)
        for number, bucket in enumerate(buckets)
    ]
