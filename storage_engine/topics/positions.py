"""Positions, and names of subscriptions, as tenants see them.

The node counts positions across all tenants, so a number, or the difference of two, reveals how
much others write. Tenants get a token instead: encrypted and authenticated under a key of the
installation, bound to the topic. The same position has the same token, so a client can recognize a
repeated publication; only the server can tell which of two comes first.

The name of a subscription contains the position after which it began, so a client with the name
can follow it from its start. The node's name consists of the topic's name and a text that locates
the subscription.
"""

from __future__ import annotations

from dataclasses import dataclass

from foundation import opaque_tokens
from foundation.errors import NotFound
from foundation.opaque_tokens import UnknownToken
from storage_engine.topics.facts import TopicFacts

__all__ = [
    "CHARS",
    "SubscriptionName",
    "UnknownToken",
    "name_of",
    "name_token",
    "position_of",
    "read_name",
    "token_of",
]

#: The length of a position's token.
CHARS = 32
_NUMBER_BYTES = 8
_POSITION, _NAME = b"position", b"subscription"
_PURPOSE = "rillbase-topic-positions"


def token_of(topic: str, position: int) -> str:
    """Return the token of a position in a topic, which is given by its name in the node."""
    return _seal(_POSITION, topic, position.to_bytes(_NUMBER_BYTES))


def position_of(topic: str, token: str) -> int:
    """Return the position that a token denotes, or raise `UnknownToken`."""
    return int.from_bytes(_open_sealed(_POSITION, topic, token))


def name_token(topic: str, name: str, position: int) -> str:
    """Return the token of a subscription: its name in the node, and where it began."""
    plain = position.to_bytes(_NUMBER_BYTES) + name.encode()
    return _seal(_NAME, topic, plain)


def name_of(topic: str, token: str) -> tuple[str, int]:
    """Return the argument of `name_token`, or raise `UnknownToken`."""
    plain = _open_sealed(_NAME, topic, token)
    return plain[_NUMBER_BYTES:].decode(), int.from_bytes(plain[:_NUMBER_BYTES])


def _seal(kind: bytes, topic: str, plain: bytes) -> str:
    return opaque_tokens.write(_PURPOSE, plain, kind, topic.encode())


def _open_sealed(kind: bytes, topic: str, token: str) -> bytes:
    return opaque_tokens.read(_PURPOSE, token, kind, topic.encode())


@dataclass(frozen=True, slots=True)
class SubscriptionName:
    """A subscription and its start."""

    node_name: str
    position: int

    @property
    def public(self) -> str:
        topic, _, name = self.node_name.partition(":")
        return name_token(topic, name, self.position)


def read_name(public: str, topic: TopicFacts) -> SubscriptionName:
    """Return the subscription that a name in a path denotes, or raise `NotFound`."""
    try:
        name, position = name_of(topic.node_name, public)
    except UnknownToken:
        raise NotFound("The subscription does not exist or has ended.") from None
    return SubscriptionName(f"{topic.node_name}:{name}", position)
