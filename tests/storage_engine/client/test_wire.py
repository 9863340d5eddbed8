"""What comes over a connection to the storage node, however it is cut into packets."""

from __future__ import annotations

import pytest

from storage_engine.node.wire import Incomplete, Push, Reader, Refused, Reply

SPOKEN = (
    b"+OK\r\n"
    b":-12\r\n"
    b"$5\r\na\r\nbc\r\n"
    b"$-1\r\n"
    b"_\r\n"
    b"#t\r\n"
    b",2.5\r\n"
    b"*2\r\n$1\r\na\r\n*0\r\n"
    b"%2\r\n$1\r\na\r\n:1\r\n+b\r\n%0\r\n"
    b"=7\r\ntxt:abc\r\n"
)
MEANT: list[Reply] = [
    b"OK",
    -12,
    b"a\r\nbc",
    None,
    None,
    True,
    2.5,
    [b"a", []],
    {b"a": 1, b"b": {}},
    b"abc",
]


def replies(received: bytes) -> tuple[list[Reply | Refused], int]:
    reader, found = Reader(received), list[Reply | Refused]()
    while not isinstance(reply := reader.next(), Incomplete):
        found.append(reply)
    return found, reader.taken


def test_every_kind_of_reply_is_understood() -> None:
    assert replies(SPOKEN) == (MEANT, len(SPOKEN))


@pytest.mark.parametrize("cut", range(len(SPOKEN)))
def test_replies_may_be_cut_anywhere(cut: int) -> None:
    before, taken = replies(SPOKEN[:cut])
    after, _ = replies(SPOKEN[taken:])
    assert before + after == MEANT


def test_a_long_value_is_waited_for_by_its_length() -> None:
    reader = Reader(b":1\r\n$1000\r\nabc")
    assert reader.next() == 1
    assert isinstance(reader.next(), Incomplete)
    assert reader.wanted == len(b":1\r\n$1000\r\n") + 1000 + 2


def test_refusals_and_pushes_are_told_from_replies() -> None:
    found, _ = replies(b"-NO_TOPIC there is none\r\n!8\r\nERR what\r\n>1\r\n+hello\r\n")
    assert [type(reply) for reply in found] == [Refused, Refused, Push]
    refused = found[0]
    assert isinstance(refused, Refused)
    assert (refused.code, refused.text) == ("NO_TOPIC", "there is none")


@pytest.mark.parametrize(
    "noise", [b"HTTP/1.1 400\r\n", b"$x\r\n", b"*1\r\n-ERR\r\n", b"%1\r\n:1\r\n:2\r\n"]
)
def test_what_is_no_resp_is_refused(noise: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 -- every kind of garbage is one
        replies(noise)
