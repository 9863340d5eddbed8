"""What a source's server sends is checked before libpq reads it."""

from __future__ import annotations

import random
from itertools import pairwise
from struct import pack

import pytest

from sources.conditions import SourceUnsuitable
from sources.upstream.server_stream import ANSWER_BYTES, SCRAM_ITERATIONS, ServerStream
from tests.sources.hostile import (
    DONE,
    GREETING,
    LOGIN,
    READY,
    columns,
    copy_data,
    message,
    parameter,
    row,
)

ROW_BYTES = 5_000


def passed(data: bytes, cuts: list[int] | None = None) -> bytes:
    """Return what passes of a server's bytes that arrive in pieces."""
    stream = ServerStream(row_bytes=ROW_BYTES)
    edges = [0, *sorted(cuts or []), len(data)]
    return b"".join(stream.accept(data[a:b]) for a, b in pairwise(edges))


def challenge(iterations: bytes) -> bytes:
    return message(b"R", pack("!I", 11) + b"r=abc,s=c2FsdA==,i=" + iterations)


ANSWER = columns(23) + row(b"1") * 3 + DONE + READY
HONEST = (
    message(b"R", pack("!I", 10) + b"SCRAM-SHA-256\0\0")
    + challenge(b"4096")
    + LOGIN
    + GREETING
    + ANSWER
    + message(b"W", b"\0\0\0")
    + copy_data(b"x" * (ROW_BYTES - 4)) * 50
)


@pytest.mark.parametrize("seed", range(20))
def test_honest_bytes_pass_as_they_are_however_they_are_cut(seed: int) -> None:
    rng = random.Random(seed)
    cuts = [rng.randrange(len(HONEST)) for _ in range(rng.randrange(200))]
    assert passed(HONEST, cuts) == HONEST
    assert passed(HONEST[:900], list(range(900))) == HONEST[:900]


def test_answers_may_be_endlessly_many_if_each_one_is_small() -> None:
    stream = ServerStream()
    stream.accept(LOGIN + GREETING)
    for _ in range(2 * ANSWER_BYTES // len(ANSWER)):
        stream.accept(ANSWER)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (challenge(str(SCRAM_ITERATIONS + 1).encode()), "protocol_violation"),
        (challenge(b"2147483647"), "protocol_violation"),
        (challenge(b"0x7fffffff"), "protocol_violation"),
        (challenge(b""), "protocol_violation"),
        (message(b"R"), "protocol_violation"),
        (message(b"R", pack("!I", 7)), "protocol_violation"),
        (b"HTTP/1.1 400 Bad Request\r\n", "protocol_violation"),
        (message(b"E")[:1] + pack("!I", 3), "protocol_violation"),
        (LOGIN + parameter("a", "b" * 1000) * 300, "message_too_large"),
        (LOGIN + GREETING + b"D" + pack("!I", 1 << 30), "message_too_large"),
        (LOGIN + GREETING + b"d" + pack("!I", ROW_BYTES + 1), "message_too_large"),
        (LOGIN + GREETING + b"D" + pack("!I", 0), "protocol_violation"),
        *(
            (LOGIN + GREETING + message * (ANSWER_BYTES // len(message) + 1), "message_too_large")
            for message in (
                row(b"1"),
                columns(23) + DONE,
                parameter("TimeZone", "UTC"),
                message(b"N", b"MA word\0\0"),
                message(b"A", b"\0\0\0\1channel\0\0"),
            )
        ),
    ],
)
def test_messages_that_are_expensive_for_libpq_are_rejected(data: bytes, code: str) -> None:
    with pytest.raises(SourceUnsuitable) as refused:
        passed(data)
    assert refused.value.code == code


def test_a_binding_to_the_tls_channel_is_not_offered_to_libpq_which_does_not_see_it() -> None:
    offered = message(b"R", pack("!I", 10) + b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0")
    assert passed(offered) == message(b"R", pack("!I", 10) + b"SCRAM-SHA-256\0\0")
