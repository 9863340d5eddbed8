"""The states of a dataset that readers may see."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from analytics.models import Run

#: The snapshot of each table and view at each committed state, in ascending order.
CommittedStates = Mapping[int, Mapping[str, int]]


def committed_states(dataset_id: UUID) -> CommittedStates:
    """Return the committed states that are retained. Runs within a transaction of the tenant."""
    runs = Run.objects.filter(dataset_id=dataset_id, stage=Run.Stage.AUTHORITY).order_by("last")
    return dict(runs.values_list("last", "snapshots"))


def tables_in(states: CommittedStates) -> list[str]:
    """Return the names of the tables of the newest state."""
    return sorted(states[max(states)]) if states else []
