"""Positions reveal nothing about the writes of other tenants."""

from __future__ import annotations

import base64

import pytest

from storage_engine.topics import positions
from tests.caller import problem
from tests.storage_engine.topics.topic_client import Topic

ONE, OTHER = "0190-one", "0190-other"


def test_a_token_is_valid_only_for_its_topic() -> None:
    token = positions.token_of(ONE, 4711)
    assert len(token) == positions.CHARS
    assert positions.position_of(ONE, token) == 4711
    assert positions.token_of(ONE, 4711) == token, "repeated publications can be recognized"
    assert positions.token_of(OTHER, 4711) != token
    with pytest.raises(positions.UnknownToken):
        positions.position_of(OTHER, token)


def test_a_forged_or_changed_token_is_rejected() -> None:
    raw = bytearray(base64.urlsafe_b64decode(positions.token_of(ONE, 1)))
    for place in range(len(raw)):
        raw[place] ^= 1
        with pytest.raises(positions.UnknownToken):
            positions.position_of(ONE, base64.urlsafe_b64encode(raw).decode())
        raw[place] ^= 1
    for made_up in ("", "1", "4711", "é", "=" * 32, positions.name_token(ONE, "x", 1)):
        with pytest.raises(positions.UnknownToken):
            positions.position_of(ONE, made_up)


def test_neighbours_have_nothing_in_common() -> None:
    tokens = [positions.token_of(ONE, number) for number in range(200)]
    assert len({token[:6] for token in tokens}) == 200
    assert tokens != sorted(tokens)


def test_positions_and_names_of_subscriptions_reveal_no_number(topic: Topic) -> None:
    subscription = topic.subscribe(id="1")
    answer = topic.publish(id="1")
    for token in (subscription["position"], answer["position"]):
        assert len(token) == positions.CHARS
        assert not token.isdigit()
    again = topic.subscribe(id="1")
    assert again["subscription_id"][:8] != subscription["subscription_id"][:8], (
        "no counter begins them"
    )
    refusal = topic.caller.get(
        f"{topic.path}/subscriptions/{subscription['subscription_id']}/live?after=4711"
    )
    problem(refusal, 400, "invalid_body")
