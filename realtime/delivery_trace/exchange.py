"""Questions and answers between processes, by lists in the event layer's Valkey.

Each process waits on a separate list, so a question is answered immediately and only once. Both
lists live for seconds: unanswered questions expire.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import cast
from uuid import UUID

from redis.exceptions import RedisError

from foundation.environment import environment
from foundation.errors import CATALOGUE, Internal, NotFound, NotTraceable, Unavailable
from foundation.json_types import JsonObject
from foundation.valkey_sockets import ValkeySockets
from realtime.delivery_trace.question import Hypothesis, TraceQuestion
from realtime.subscriptions import names, subscription_list

ANSWER_TIMEOUT_S = 6
#: How long a question remains valid.
LIFETIME_S = 10
CONNECT_TIMEOUT_S = 0.5
_ROOT = "{rillbase}:live:why:"
NOT_ANSWERED = "The server that holds the subscription did not respond."


def questions(process: str) -> str:
    """Return the key of the list on which a process waits for questions."""
    return f"{_ROOT}{process}"


def answers(nonce: str) -> str:
    """Return the key of the list on which the answer is expected."""
    return f"{_ROOT}answer:{nonce}"


def described(tenant_id: UUID, public: str) -> JsonObject:
    """Return the list entry of a subscription that can be explained, or raise."""
    rows = [row for row in subscription_list.listed(tenant_id) if row["id"] == public]
    if not rows:
        raise NotFound("The subscription does not exist.")
    if "collection" not in rows[0]:
        raise NotTraceable
    return rows[0]


def ask(tenant_id: UUID, public: str, key: bytes, version: int | None) -> JsonObject:
    """Ask the process that has one of the tenant's subscriptions to explain it."""
    parts = names.split(public)
    if parts is None:
        raise NotFound("The subscription does not exist.")
    process, subscription = parts
    return _answer_of(process, TraceQuestion(tenant_id, subscription, key, version))


def suppose(tenant_id: UUID, whom: Hypothesis, key: bytes, version: int | None) -> JsonObject:
    """Explain, in this process itself, what a hypothetical subscriber would receive."""
    if not _AnsweringProcess.process:
        raise Unavailable(NOT_ANSWERED, headers={"Retry-After": "1"})
    return _answer_of(_AnsweringProcess.process, TraceQuestion(tenant_id, whom, key, version))


class _AnsweringProcess:
    """The name of this process, once it answers questions."""

    process = ""


def answers_here(process: str) -> None:
    """Set the name under which this process waits for questions."""
    _AnsweringProcess.process = process


def _answer_of(process: str, question: TraceQuestion) -> JsonObject:
    try:
        _sockets().call("RPUSH", questions(process), question.to_json())
        _sockets().call("EXPIRE", questions(process), LIFETIME_S)
        reply = _sockets().call("BLPOP", answers(question.nonce), ANSWER_TIMEOUT_S)
    except RedisError:
        raise Unavailable(NOT_ANSWERED, headers={"Retry-After": "1"}) from None
    if not isinstance(reply, list) or not isinstance(reply[1], bytes):
        raise Unavailable(NOT_ANSWERED, headers={"Retry-After": "1"})
    return _read(reply[1])


def _read(text: bytes) -> JsonObject:
    """Return the answer, or raise the error of the other process."""
    answer = cast("JsonObject", json.loads(text))
    refused = answer.get("refused")
    if isinstance(refused, dict):
        error = CATALOGUE.get(str(refused.get("code")), Internal)
        raise error(str(refused.get("detail")))
    return answer


@lru_cache(maxsize=1)
def _sockets() -> ValkeySockets:
    return ValkeySockets(
        environment().events,
        connect_timeout_s=CONNECT_TIMEOUT_S,
        answer_timeout_s=ANSWER_TIMEOUT_S + 2,
    )


def close() -> None:
    """Close the connections of this process."""
    _sockets().close()
