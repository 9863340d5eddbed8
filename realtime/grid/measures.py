"""A node's report, as metrics."""

from __future__ import annotations

from collections.abc import Mapping

from foundation import metrics

_US_PER_S = 1_000_000
#: Names in reports, and the labels of the metrics.
_WORK = {
    "entries": "entries",
    "notifications": "notifications",
    "matched_documents": "matched",
    "candidates": "candidates",
    "verified": "verified",
    "residual_evaluations": "residual",
    "rebuilds": "rebuilds",
    "quarantined": "quarantined",
    "panics": "panics",
}


def measure(node: str, report: Mapping[str, object]) -> None:
    """Export a report. A report without figures, of an unavailable node, sets the rest to zero."""
    metrics.GRID_NODE_UP.labels(node).set(report.get("state") == "running")
    metrics.GRID_NODE_LAG.labels(node).set(_number(report, "lag_us") / _US_PER_S)
    metrics.GRID_NODE_QUERIES.labels(node).set(_number(report, "queries"))
    metrics.GRID_NODE_BYTES.labels(node, "index").set(_number(report, "index_bytes"))
    metrics.GRID_NODE_BYTES.labels(node, "images").set(_number(report, "retained_bytes"))
    for name, kind in _WORK.items():
        metrics.GRID_NODE_WORK.labels(node, kind).set(_number(report, name))
    cpu_s = _number(report, "cpu_us") / _US_PER_S
    metrics.GRID_NODE_WORK.labels(node, "cpu_seconds").set(cpu_s)


def _number(report: Mapping[str, object], name: str) -> float:
    value = report.get(name)
    return float(value) if isinstance(value, int) else 0.0
