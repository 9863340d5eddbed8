"""What the control plane keeps of the real-time side: tenants' own clusters."""

from realtime.models.cluster import Cluster

__all__ = ["Cluster"]
