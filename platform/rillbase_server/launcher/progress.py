"""How far each service is: a line each, with the time it has taken."""

from rich.table import Table
from rich.text import Text

from .lifecycle import State
from .runner import Runner

SIGNS = {
    State.DECLARED: ("·", "dim"),
    State.STARTING: ("…", "yellow"),
    State.READY: ("✓", "green"),
    State.DONE: ("✓", "green"),
    State.BACKING_OFF: ("↻", "yellow"),
    State.STOPPING: ("…", "yellow"),
    State.STOPPED: ("■", "dim"),
    State.FAILED: ("✗", "bold red"),
}
WAITING = "waiting"
NAME_WIDTH = 9


def progress_table(runners: list[Runner], now: float) -> Table:
    """All services, for a terminal."""
    table = Table.grid(padding=(0, 1))
    for runner in runners:
        sign, style = SIGNS[runner.state]
        row = (sign, runner.service.name, _state(runner), _time(runner, now), _detail(runner))
        table.add_row(*(Text(cell, style=style) for cell in row))
    return table


def progress_line(runner: Runner) -> str:
    """What has just changed about one service, for plain output."""
    took = "" if runner.took_s is None else f"after {runner.took_s:.1f} s"
    parts = (f"  {runner.service.name:<{NAME_WIDTH}}", _state(runner), took, _detail(runner))
    return " ".join(part for part in parts if part)


def _state(runner: Runner) -> str:
    return WAITING if runner.state is State.DECLARED else str(runner.state)


def _time(runner: Runner, now: float) -> str:
    if runner.state in (State.STARTING, State.STOPPING):
        return f"{now - runner.life.since:.1f} s"
    return "" if runner.took_s is None else f"{runner.took_s:.1f} s"


def _detail(runner: Runner) -> str:
    if runner.state in (State.BACKING_OFF, State.FAILED):
        return runner.life.reason
    return ""
