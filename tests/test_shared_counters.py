"""Values that a tenant can read are not counters that other tenants' activity increases."""

from __future__ import annotations

from typing import Any

import pytest

from aggregates.facts import AggregateFacts
from aggregates.live.tokens import AggregateResumePoint, AggregateTokens
from foundation import opaque_tokens
from foundation.errors import InvalidBody
from foundation.ids import uuid7
from tests.documents.collection import CollectionClient, make_collection


def inserted(things: CollectionClient) -> int:
    result: dict[str, Any] = things.insert({"n": 1})
    return int(result["id"]["$oid"], 16)


def test_the_difference_of_two_ids_does_not_reveal_the_number_of_other_inserts(server: str) -> None:
    things, others = make_collection(server), make_collection(server)
    distances = set[int]()
    for _ in range(3):
        before = inserted(things)
        others.insert({"n": 1})
        after = inserted(things)
        assert before < after
        distances.add((after - before) % 2**24)
    # A counter would give the same difference each time.
    assert len(distances) == 3


def facts() -> AggregateFacts:
    return AggregateFacts(
        id=uuid7(),
        tenant_id=uuid7(),
        name="calls",
        definition=b"",
        measures=frozenset(),
        time_field=None,
        is_view=False,
        generation=1,
        error="",
        notices=(),
    )


def test_a_resume_token_of_an_aggregate_hides_the_nodes_position() -> None:
    aggregate = facts()
    tokens = AggregateTokens(aggregate, "key", b"{}")
    text = tokens.write(AggregateResumePoint(123_456_789, 7))
    assert tokens.read(text) == AggregateResumePoint(123_456_789, 7)
    assert "123456789" not in text
    following = tokens.write(AggregateResumePoint(123_456_790, 7))
    assert sum(one == other for one, other in zip(text, following, strict=True)) < len(text) / 2
    for stranger in (
        AggregateTokens(aggregate, "other", b"{}"),
        AggregateTokens(facts(), "key", b"{}"),
    ):
        with pytest.raises(InvalidBody):
            stranger.read(text)
    for broken in ("", "1.2.3", "~", text[:-1], "A" * 200):
        with pytest.raises(InvalidBody):
            tokens.read(broken)


def test_an_opaque_token_is_valid_only_for_its_purpose() -> None:
    token = opaque_tokens.write("one", b"5", b"topic")
    assert opaque_tokens.read("one", token, b"topic") == b"5"
    for purpose, bound in (("other", b"topic"), ("one", b"another")):
        with pytest.raises(opaque_tokens.UnknownToken):
            opaque_tokens.read(purpose, token, bound)
