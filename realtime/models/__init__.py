"""Tables of the control plane for live queries: tenants' dedicated grids."""

from realtime.models.cluster import Cluster

__all__ = ["Cluster"]
