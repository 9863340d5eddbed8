"""The progress of each service, with the elapsed time."""

from rich.table import Table
from rich.text import Text

from .lifecycle import ServiceState
from .runner import Runner

SIGNS = {
    ServiceState.DECLARED: ("·", "dim"),
    ServiceState.STARTING: ("…", "yellow"),
    ServiceState.READY: ("✓", "green"),
    ServiceState.DONE: ("✓", "green"),
    ServiceState.BACKING_OFF: ("↻", "yellow"),
    ServiceState.STOPPING: ("…", "yellow"),
    ServiceState.STOPPED: ("■", "dim"),
    ServiceState.FAILED: ("✗", "bold red"),
}
WAITING = "waiting"
NAME_WIDTH = 9


def progress_table(runners: list[Runner], now: float) -> Table:
    """Return a table of all services, for terminals."""
    table = Table.grid(padding=(0, 1))
    for runner in runners:
        sign, style = SIGNS[runner.state]
        row = (sign, runner.service.name, _state(runner), _time(runner, now), _detail(runner))
        table.add_row(*(Text(cell, style=style) for cell in row))
    return table


def progress_line(runner: Runner) -> str:
    """Return a line about the change of one service, for plain output."""
    took = "" if runner.took_s is None else f"after {runner.took_s:.1f} s"
    parts = (f"  {runner.service.name:<{NAME_WIDTH}}", _state(runner), took, _detail(runner))
    return " ".join(part for part in parts if part)


def _state(runner: Runner) -> str:
    return WAITING if runner.state is ServiceState.DECLARED else str(runner.state)


def _time(runner: Runner, now: float) -> str:
    if runner.state in (ServiceState.STARTING, ServiceState.STOPPING):
        return f"{now - runner.life.since:.1f} s"
    return "" if runner.took_s is None else f"{runner.took_s:.1f} s"


def _detail(runner: Runner) -> str:
    if runner.state in (ServiceState.BACKING_OFF, ServiceState.FAILED):
        return runner.life.reason
    return ""
