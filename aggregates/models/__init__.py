"""What the control plane keeps of aggregates; the numbers are in the storage node."""

from aggregates.models.aggregate import Aggregate

__all__ = ["Aggregate"]
