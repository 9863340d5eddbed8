"""Messages that correspond to REST calls. Products register how each type of message is parsed.

A message has the same limits, scopes, rules and idempotency keys as the REST call of its name. Its
members are those of the REST body; where a body has an `id`, the message has another name for it,
since `id` names the message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from connections.messages import Message
from data_plane.internal_call import InternalCall
from foundation.api.idempotency import HEADER as IDEMPOTENCY_HEADER
from rillbase_native import Value


def _no_order(_: Message) -> bytes | None:
    return None


@dataclass(frozen=True, slots=True)
class MessageCall:
    """One type of message."""

    #: Returns the REST call, or raises `InvalidBody`.
    read: Callable[[Message], InternalCall]
    #: Messages with the same key run one after the other; None: immediately.
    order_key: Callable[[Message], bytes | None] = _no_order


#: By type of message.
MessageCalls = Mapping[str, MessageCall]


def with_idempotency_key(message: Message, call: InternalCall) -> InternalCall:
    key = message.text("idempotency_key")
    if key is not None:
        call.headers[IDEMPOTENCY_HEADER] = key
    return call


def object_of(value: Value, members: Sequence[str]) -> bytes:
    """Return these members as the body of a call."""
    present = ((name, value.get(name)) for name in members)
    pairs = [
        b'"%b":%b' % (name.encode(), member.ejson(canonical=True))
        for name, member in present
        if member is not None
    ]
    return b"{" + b",".join(pairs) + b"}"
