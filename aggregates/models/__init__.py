"""Tables of the control plane for aggregates; their rows are in the storage node."""

from aggregates.models.aggregate import Aggregate

__all__ = ["Aggregate"]
