"""The board in a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group
from rich.layout import Layout
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from examples.apm.board import Bucket, Series

INK, QUIET, CALM, ALARM, FRAME = "#e6edf3", "#8899a6", "#4cc9f0", "#ff5d5d", "#3b4a5a"
COLOURS = ("#4cc9f0", "#90be6d", "#ffa94d", "#b197fc")
BARS = "▁▂▃▄▅▆▇█"
SIDE_COLUMNS, FOOT_ROWS, MOST_BARS = 46, 3, 48


def drawn(series: Sequence[Series], traffic: dict[str, list[int]], foot: Text, rows: int) -> Layout:
    """Return the whole screen."""
    screen = Layout()
    foot_panel = Panel(foot, border_style=FRAME, padding=0)
    screen.split_column(Layout(name="body"), Layout(foot_panel, name="foot", size=FOOT_ROWS))
    screen["body"].split_row(
        Layout(_endpoints(series), name="endpoints"),
        Layout(_side(series, traffic, rows), name="side", size=SIDE_COLUMNS),
    )
    return screen


def _endpoints(series: Sequence[Series]) -> Panel:
    table = Table(box=None, expand=True, header_style=QUIET, padding=(0, 1))
    table.add_column("endpoint", no_wrap=True)
    table.add_column("latency, five minutes a bar", no_wrap=True, ratio=1)
    for name in ("now", "before", "requests"):
        table.add_column(name, justify="right", no_wrap=True)
    for line in series:
        last = line.buckets[-1]
        table.add_row(
            Text(line.name, ALARM if last.is_alert else INK),
            _bars(line.buckets[-MOST_BARS:]),
            Text(f"{last.latency_ms:.0f} ms", f"bold {ALARM if last.is_alert else INK}"),
            Text("" if last.previous_ms is None else f"{last.previous_ms:.0f} ms", QUIET),
            Text(str(last.count), QUIET),
        )
    title = f"[bold {INK}]apm[/] [{QUIET}]· average latency, red where it doubled[/]"
    return Panel(table, title=title, border_style=FRAME)


def _bars(buckets: Sequence[Bucket]) -> Text:
    most = max((bucket.latency_ms for bucket in buckets), default=0.0) or 1.0
    text = Text()
    for bucket in buckets:
        text.append(_bar(bucket.latency_ms / most), ALARM if bucket.is_alert else CALM)
    return text


def _bar(share: float) -> str:
    return BARS[min(len(BARS) - 1, int(share * len(BARS)))]


def _side(series: Sequence[Series], traffic: dict[str, list[int]], rows: int) -> Group:
    flows = Text()
    for place, (customer, counts) in enumerate(traffic.items()):
        shown, colour = counts[-26:], COLOURS[place % len(COLOURS)]
        flows.append(f"{customer:<10}", INK)
        flows.append("".join(_bar(count / (max(shown) or 1)) for count in shown), colour)
        flows.append(f" {counts[-1]:>4}\n", QUIET)
    alerts = sorted(
        ((bucket, line) for line in series for bucket in line.alerts),
        key=lambda pair: pair[0].at,
        reverse=True,
    )
    text = Text()
    for bucket, line in alerts[: max(3, rows - 12)]:
        text.append(f"{bucket.at[11:16]} ", QUIET)
        text.append(f"{line.name:<24.24}", ALARM)
        text.append(f"{bucket.previous_ms or 0:4.0f} → {bucket.latency_ms:.0f}\n", INK)
    return Group(
        Panel(flows, title=f"[bold {INK}]requests of customers[/]", border_style=FRAME),
        Panel(text, title=f"[bold {INK}]alerts[/]", border_style=FRAME),
    )
