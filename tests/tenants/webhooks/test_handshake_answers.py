"""A receiver may answer the handshake with anything."""

from __future__ import annotations

import pytest

from tenants.webhooks.handshake import echoes


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "[" * 1000,
        '{"challenge": null}',
        '{"challenge": ["it"]}',
        '["it"]',
        "5",
        "NaN",
        "not it",
    ],
)
def test_other_responses_are_not_the_challenge(answer: str) -> None:
    assert not echoes(answer, "it")


@pytest.mark.parametrize("answer", ["it", " it\n", '"it"', '{"challenge": "it"}'])
def test_the_challenge_is_recognised_as_text_and_as_json(answer: str) -> None:
    assert echoes(answer, "it")
