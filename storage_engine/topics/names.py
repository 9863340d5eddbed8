"""A subscription's name in the API.

The node's name consists of the topic's name and a text that locates the subscription. In the API,
the topic is in the path, and the position after which the subscription began is part of the name,
so a client with the name can follow the subscription from its start. Both are encrypted, since they
count the writes of all tenants.
"""

from __future__ import annotations

from dataclasses import dataclass

from foundation.errors import NotFound
from storage_engine.topics import positions
from storage_engine.topics.facts import TopicFacts


@dataclass(frozen=True, slots=True)
class SubscriptionName:
    """A subscription and its start."""

    node_name: str
    position: int

    @property
    def public(self) -> str:
        topic, _, name = self.node_name.partition(":")
        return positions.name_token(topic, name, self.position)


def read(public: str, topic: TopicFacts) -> SubscriptionName:
    """Return the subscription that a name in a path denotes, or raise `NotFound`."""
    try:
        name, position = positions.name_of(topic.node_name, public)
    except positions.UnknownToken:
        raise NotFound("The subscription does not exist or has ended.") from None
    return SubscriptionName(f"{topic.node_name}:{name}", position)
