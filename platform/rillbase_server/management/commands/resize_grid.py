"""Resize the matching grid that all tenants share, without downtime."""

from __future__ import annotations

import time

from django.core.management.base import BaseCommand, CommandError, CommandParser

from realtime.clusters import epochs, grids, proposal
from realtime.clusters.forms import MOST_QUERY_PARTITIONS, MOST_WRITE_PARTITIONS
from realtime.grid.layout import GridEpoch
from realtime.grid.size import GridSize

LOOK_S = 0.5


class Command(BaseCommand):
    help = (
        "Resize the matching grid that all tenants share. A second grid starts beside the "
        "current one and takes over once all its nodes are ready. Without a size: show the "
        "current grid and the proposed size."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--write-partitions", type=int, help="number of write partitions")
        parser.add_argument("--query-partitions", type=int, help="number of query partitions")
        parser.add_argument(
            "--no-wait", action="store_true", help="do not wait until the new grid takes over"
        )

    def handle(self, *args: object, **options: object) -> None:
        serving = epochs.shared()[-1]
        write, query = options["write_partitions"], options["query_partitions"]
        if write is None and query is None:
            self._show()
            return
        size = GridSize(
            _option_value(
                "--write-partitions", write, serving.write_partitions, MOST_WRITE_PARTITIONS
            ),
            _option_value(
                "--query-partitions", query, serving.query_partitions, MOST_QUERY_PARTITIONS
            ),
        )
        number = epochs.add_shared(size)
        if number is None:
            self.stdout.write(f"The grid already has {size} partitions.")
            return
        self.stdout.write(f"Grid {number} with {size} partitions is starting.")
        if not options["no_wait"]:
            self._wait(number)

    def _wait(self, number: int) -> None:
        """Report progress until the new grid has taken over."""
        announced = False
        while [grid.epoch for grid in epochs.shared()] != [number]:
            newest = epochs.shared()[-1]
            if newest.epoch != number:
                raise CommandError(f"Grid {newest.epoch} was created in the meantime.")
            if not announced and grids.watches(newest):
                self.stdout.write("All of its nodes are ready; servers switch to it.")
                announced = True
            time.sleep(LOOK_S)
        self.stdout.write(f"Grid {number} has taken over.")

    def _show(self) -> None:
        for grid in epochs.shared():
            word = "all nodes ready" if grids.watches(grid) else "not all nodes ready"
            self.stdout.write(
                f"Grid {grid.epoch}: {grid.size} partitions, {word}, "
                f"{grids.queries(grid)} live queries."
            )
            self._propose(grid)

    def _propose(self, grid: GridEpoch) -> None:
        proposed = proposal.propose(grid.size, grids.loads(grid), proposal.USUAL_MEMORY_BYTES)
        if proposed is not None:
            self.stdout.write(f"Proposed: {proposed.size} partitions. {proposed.message}")


def _option_value(name: str, option: object, now: int, maximum: int) -> int:
    value = now if option is None else int(str(option))
    if not 1 <= value <= maximum:
        raise CommandError(f"{name} must be a number from 1 to {maximum}.")
    return value
