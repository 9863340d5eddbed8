"""Creates the supervisor of the matching grid, with the launcher of its nodes."""

from __future__ import annotations

from foundation.environment import environment
from realtime.grid.launcher import Launcher
from realtime.grid.processes import ProcessLauncher
from realtime.grid.supervisor import GridSupervisor


def build_supervisor(epoch: int | None) -> GridSupervisor:
    """Make the supervisor of one grid epoch, or of the grids that tenants share."""
    return GridSupervisor(_launcher(environment().rillbase_grid), epoch)


def _launcher(kind: str) -> Launcher:
    if kind == "processes":
        return ProcessLauncher()
    # Spark takes a second to import, and is installed only where it is used.
    from realtime.grid.spark import SparkLauncher  # noqa: PLC0415

    return SparkLauncher()
