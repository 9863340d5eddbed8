"""Publishing over a connection."""

from __future__ import annotations

from connections.message_calls import MessageCall, MessageCalls, object_of, with_idempotency_key
from connections.messages import Message
from data_plane.internal_call import InternalCall
from storage_engine.topics import publish
from storage_engine.topics.api.calls import publish_one

#: The publication's place is `topic_id`, since `id` names the message.
_PUBLICATION = tuple(name for name in publish.MEMBERS if name != "id")


def _publish(message: Message) -> InternalCall:
    message.allow(("topic", "topic_id", "idempotency_key", *_PUBLICATION))
    topic = message.required_text("topic")
    body = object_of(message.value, _PUBLICATION)
    place = message.value.get("topic_id")
    if place is not None:
        more = b"," if body != b"{}" else b""
        body = b'{"id":' + place.ejson(canonical=True) + more + body[1:]
    path = f"/v1/topics/{topic}/publications"
    call = InternalCall(publish_one, "POST", path, {"topic": topic}, body)
    return with_idempotency_key(message, call)


CALLS: MessageCalls = {"publish": MessageCall(_publish)}
