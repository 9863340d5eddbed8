"""Resume tokens of topics: the subscription, the position, and the number of events sent.

They are authenticated and bound to the caller and the topic, like those of queries.
"""

from __future__ import annotations

import hmac
import re
from dataclasses import dataclass
from hashlib import sha256
from uuid import UUID

from foundation.environment import environment
from foundation.errors import FieldProblem, InvalidBody
from storage_engine.topics import positions
from storage_engine.topics.facts import TopicFacts
from storage_engine.topics.positions import SubscriptionName

MAX_CHARS = 5_700
_TAG_CHARS = 32
_FORM = re.compile(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.(\d{1,18})\.([0-9a-f]{32})\Z")


@dataclass(frozen=True, slots=True)
class TopicResumePoint:
    """The position of a subscriber."""

    name: SubscriptionName
    position: int
    events: int


class TopicResumeTokens:
    """Writes and reads the tokens of one caller for one topic."""

    def __init__(self, tenant_id: UUID, actor: str, topic: TopicFacts) -> None:
        self._topic = topic
        secret = environment().rillbase_secret_key.get_secret_value().encode()
        bound = f"topic-resume|{tenant_id}|{topic.id}|{actor}".encode()
        self._keyed = hmac.new(secret, bound + b"\0", sha256)

    def write(self, resume_point: TopicResumePoint) -> str:
        position = positions.token_of(self._topic.node_name, resume_point.position)
        text = f"{resume_point.name.public}.{position}.{resume_point.events}"
        return f"{text}.{self._tag(text)}"

    def read(self, token: str) -> TopicResumePoint:
        """Return the content of a token, or raise."""
        form = _FORM.match(token) if len(token) <= MAX_CHARS else None
        if form is None or not hmac.compare_digest(form[4], self._tag(token[: -_TAG_CHARS - 1])):
            detail = "The token belongs to a different subscription."
            raise InvalidBody(errors=[FieldProblem("/resume", "invalid", detail)])
        position = positions.position_of(self._topic.node_name, form[2])
        return TopicResumePoint(positions.read_name(form[1], self._topic), position, int(form[3]))

    def _tag(self, text: str) -> str:
        keyed = self._keyed.copy()
        keyed.update(text.encode())
        return keyed.hexdigest()[:_TAG_CHARS]
