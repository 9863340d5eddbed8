"""What the control plane keeps of topics; publications and subscriptions are in the node."""

from storage_engine.models.delivered_subscription import DeliveredSubscription
from storage_engine.models.topic import Topic

__all__ = ["DeliveredSubscription", "Topic"]
