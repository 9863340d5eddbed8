"""Replies of Valkey and of the storage node are read however they are cut into packets."""

from __future__ import annotations

import pytest

from foundation.resp_reader import Push, RespProtocolError, RespReader

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
MEANT: list[object] = [
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


def reader(max_reply_bytes: int = 1_000_000) -> RespReader:
    return RespReader(KeyError, max_reply_bytes=max_reply_bytes)


@pytest.mark.parametrize("cut", range(len(SPOKEN) + 1))
def test_replies_may_be_cut_anywhere(cut: int) -> None:
    cut_reader = reader()
    assert [*cut_reader.read(SPOKEN[:cut]), *cut_reader.read(SPOKEN[cut:])] == MEANT


def test_replies_may_come_byte_by_byte() -> None:
    slow = reader()
    assert [reply for byte in SPOKEN for reply in slow.read(bytes([byte]))] == MEANT


def test_errors_and_pushes_differ_from_replies() -> None:
    error, push, reply = reader().read(b"-NO_TOPIC gone\r\n>1\r\n+hello\r\n*1\r\n+hello\r\n")
    assert isinstance(error, KeyError)
    assert error.args == ("NO_TOPIC gone",)
    assert isinstance(push, Push)
    assert push == reply == [b"hello"]
    assert not isinstance(reply, Push)


@pytest.mark.parametrize(
    "noise", [b"HTTP/1.1 400\r\n", b"$x\r\n", b"$-5\r\n", b"*99999999999\r\n", b":one\r\n"]
)
def test_what_is_not_resp_is_rejected(noise: bytes) -> None:
    with pytest.raises(RespProtocolError):
        list(reader().read(noise))


@pytest.mark.parametrize("large", [b"$1000\r\n" + b"a" * 101, b"*100\r\n" + b":1\r\n" * 30])
def test_a_reply_that_is_too_large_is_rejected_while_it_arrives(large: bytes) -> None:
    with pytest.raises(RespProtocolError):
        list(reader(max_reply_bytes=100).read(large))


def test_the_bound_is_for_each_reply() -> None:
    assert list(reader(max_reply_bytes=100).read(b":1\r\n" * 100)) == [1] * 100
