"""Publications and subscriptions in the node's replies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from storage_engine.node.wire import Reply

Words = tuple[bytes | float, ...]


class UnexpectedReply(Exception):
    """The node's reply does not have the expected form."""


@dataclass(frozen=True, slots=True)
class Publication:
    """A publication. Times are milliseconds since 1970."""

    position: int
    name: str
    at_ms: int
    until_ms: int
    place: Words
    #: BSON.
    data: bytes | None

    @classmethod
    def of(cls, reply: Reply) -> Self:
        members = _map(reply)
        data = members.get(b"data")
        return cls(
            position=_integer(members, b"position"),
            name=text(members, b"name"),
            at_ms=_integer(members, b"at"),
            until_ms=_integer(members, b"until"),
            place=_place(members),
            data=data if isinstance(data, bytes) else None,
        )


@dataclass(frozen=True, slots=True)
class TopicSubscriber:
    """A subscription as others see it."""

    id: str
    position: int
    name: str
    from_ms: int
    until_ms: int
    place: Words
    #: BSON.
    filter: bytes | None
    unseen_only: bool

    @classmethod
    def of(cls, reply: Reply) -> Self:
        members = _map(reply)
        filter_bytes = members.get(b"filter")
        return cls(
            id=text(members, b"subscription"),
            position=_integer(members, b"position"),
            name=text(members, b"name"),
            from_ms=_integer(members, b"from"),
            until_ms=_integer(members, b"until"),
            place=_place(members),
            filter=filter_bytes if isinstance(filter_bytes, bytes) else None,
            unseen_only=bool(members.get(b"unseen")),
        )


def publications(reply: Reply) -> list[Publication]:
    """Return a list of publications."""
    return [Publication.of(item) for item in items(reply)]


def subscriptions(reply: Reply) -> list[TopicSubscriber]:
    """Return a list of subscriptions."""
    return [TopicSubscriber.of(item) for item in items(reply)]


def items(reply: Reply) -> list[Reply]:
    if reply is None:
        return []
    if not isinstance(reply, list):
        raise UnexpectedReply("expected a list")
    return reply


def member(reply: Reply, name: bytes) -> Reply:
    """Return a member of a map, or None if it is missing."""
    return _map(reply).get(name)


def number(reply: Reply, name: bytes) -> int:
    return _integer(_map(reply), name)


def text(members: Mapping[bytes, Reply], name: bytes) -> str:
    value = members.get(name)
    return value.decode() if isinstance(value, bytes) else ""


def _map(reply: Reply) -> Mapping[bytes, Reply]:
    if not isinstance(reply, dict):
        raise UnexpectedReply("expected a map")
    return reply


def _integer(members: Mapping[bytes, Reply], name: bytes) -> int:
    value = members.get(name)
    if not isinstance(value, int):
        raise UnexpectedReply(f"{name.decode()} is not an integer")
    return value


def _place(members: Mapping[bytes, Reply]) -> Words:
    return tuple(
        word for word in items(members.get(b"place")) if isinstance(word, (bytes, float, int))
    )
