"""A subscription's name in the API.

The node's name is the topic's and a text. In the API the topic stands in the path, and the
position behind which the subscription began is part of the name, so whoever has the name can
follow the subscription from its beginning.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from foundation.errors import NotFound
from storage_engine.topics.facts import TopicFacts

_FORM = re.compile(r"([A-Za-z0-9_-]{1,4000})\.(\d{1,18})\Z")


@dataclass(frozen=True, slots=True)
class SubscriptionName:
    """Which subscription it is, and where it began."""

    node_name: str
    position: int

    @property
    def public(self) -> str:
        return f"{self.node_name.partition(':')[2]}.{self.position}"


def read(public: str, topic: TopicFacts) -> SubscriptionName:
    """Return what a name in a path stands for, or raise `NotFound`."""
    form = _FORM.match(public)
    if form is None:
        raise NotFound("There is no such subscription, or it has ended.")
    return SubscriptionName(f"{topic.node_name}:{form[1]}", int(form[2]))
