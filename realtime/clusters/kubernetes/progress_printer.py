"""Prints the progress and the status of a cluster on a terminal."""

from __future__ import annotations

from collections import Counter
from typing import cast

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from realtime.clusters import epochs, grids
from realtime.clusters.kubernetes.cluster_spec import namespace_of
from realtime.clusters.kubernetes.desired_spec import installation
from realtime.clusters.kubernetes.differences import FieldDifference
from realtime.clusters.kubernetes.steps import ApplyStep, Verb
from realtime.models import Cluster

_SIGNS = {
    Verb.CREATE: ("green", "+", "create"),
    Verb.CHANGE: ("yellow", "~", "change"),
    Verb.KEEP: ("dim", "=", "unchanged"),
    Verb.DELETE: ("red", "-", "remove"),
}
_STATUS = {"True": "green", "False": "red", "Unknown": "yellow"}
_MAX_VALUE_CHARS = 70


class ProgressPrinter:
    """Prints one command's progress. Without a terminal, its lines have no colours."""

    def __init__(self, tenant: str, console: Console | None = None) -> None:
        self._tenant = tenant
        self._console = console or Console(highlight=False, soft_wrap=True)
        self._counts = Counter[Verb]()

    def step(self, step: ApplyStep, *, fields: bool = False) -> None:
        """Print one object; with `fields`, also each field that differs."""
        self._counts[step.verb] += 1
        colour, sign, label = _SIGNS[step.verb]
        where = f"{len(step.changes)} fields" if step.changes and not fields else ""
        name = escape(str(step.object))
        self._console.print(f"[{colour}]{sign} {name:<44}[/] [dim]{label}[/] {where}".rstrip())
        if fields:
            for change in step.changes:
                self._console.print(_change_text(change))

    def end_preview(self) -> None:
        """Print the summary of a preview."""
        changes = sum(count for verb, count in self._counts.items() if verb is not Verb.KEEP)
        summary = (
            f"Nothing was changed: {self._sum()}." if changes else ("All objects are as described.")
        )
        self._console.print(summary)

    def end(self, cluster: Cluster) -> None:
        """Print the summary of an apply."""
        self._console.print(f"Done: {self._sum()}.")
        self.status(cluster)

    def status(self, cluster: Cluster) -> None:
        """Print the state of the cluster."""
        image = cluster.image or "default"
        self._console.print(
            f"[bold]{escape(self._tenant)}[/] is [bold]{cluster.state}[/] in "
            f"{namespace_of(installation().name, cluster.tenant_id)}\n"
            f"  {cluster.size} partitions · {cluster.node_size} · "
            f"{cluster.tier} · image {escape(image)} · next check {cluster.due_at:%H:%M:%S}"
        )
        self._console.print(_conditions(cluster))
        for own in epochs.dedicated_epochs(cluster.tenant_id):
            label = "all nodes ready" if grids.watches(own.grid) else "not ready"
            self._console.print(
                f"  grid {own.grid.epoch}: {own.grid.size} partitions, {label}, "
                f"{grids.queries(own.grid)} live queries"
            )

    def _sum(self) -> str:
        labels = ((verb, _SIGNS[verb][2]) for verb in Verb)
        return ", ".join(f"{self._counts[verb]} {label}" for verb, label in labels)


def _change_text(change: FieldDifference) -> str:
    before, after = _value(change.before), _value(change.after)
    return f"    {escape(change.path)}: [red]{before}[/] → [green]{after}[/]"


def _value(value: object) -> str:
    text = "nothing" if value is None else str(value)
    return escape(text if len(text) <= _MAX_VALUE_CHARS else text[:_MAX_VALUE_CHARS] + "…")


def _conditions(cluster: Cluster) -> Table:
    table = Table(box=None, padding=(0, 2), show_header=bool(cluster.conditions))
    for title in ("condition", "status", "reason", "since", "message"):
        table.add_column(title, overflow="fold")
    for condition in cast("list[dict[str, str]]", cluster.conditions):
        status = f"[{_STATUS[condition['status']]}]{condition['status']}[/]"
        since = condition["last_transition_at"][:19]
        table.add_row(
            condition["type"], status, condition["reason"], since, escape(condition["message"])
        )
    return table
