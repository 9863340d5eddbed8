"""The node responds to redis-cli and valkey-cli as they expect.

The programs themselves come with no package that the suite installs. They begin with `AUTH` and
`HELLO`, ask `COMMAND DOCS` for their help, and end a piped input with an `ECHO`.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import pytest

from tests.own_storage_node import TOKEN, OwnStorageNode, ask, token_of

#: Of the end of a piped input: what is sent last, and has to come back.
MARK = b"\x9d\x1fk\x80\x0c\xe2Q\xf7\x11\xaa\x05Z\xc4\x18\x90!\xb3w\xd6\x02"
_SIGNS = {b"*": list, b"%": dict, b">": list}


class Terminal:
    """A connection that sends bytes as they are."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._file: BinaryIO = connection.makefile("rb")

    def send(self, *words: bytes | str) -> Any:
        """Send a command as an array and return the reply."""
        parts = [word if isinstance(word, bytes) else word.encode() for word in words]
        bulk = b"".join(b"$%d\r\n%b\r\n" % (len(part), part) for part in parts)
        return self.raw(b"*%d\r\n%b" % (len(parts), bulk))

    def raw(self, request_bytes: bytes) -> Any:
        self._connection.sendall(request_bytes)
        return self.reply()

    def reply(self) -> Any:
        line = self._file.readline()
        sign, rest = line[:1], line[1:-2]
        match sign:
            case b"+":
                return rest.decode()
            case b"-":
                return ConnectionError(rest.decode())
            case b":":
                return int(rest)
            case b"_":
                return None
            case b"$":
                if int(rest) < 0:
                    return None
                return self._file.read(int(rest) + 2)[:-2]
            case b"%":
                return {self.reply(): self.reply() for _ in range(int(rest))}
            case _:
                assert sign in _SIGNS, line
                return [self.reply() for _ in range(int(rest))]


@contextmanager
def terminal(node: OwnStorageNode) -> Iterator[Terminal]:
    with socket.create_connection(("127.0.0.1", node.port), timeout=30) as connection:
        yield Terminal(connection)


@pytest.mark.parametrize("version", [2, 3])
def test_the_commands_that_begin_a_session_of_redis_cli_work(
    shared_node: OwnStorageNode, version: int
) -> None:
    shared_node.namespace("cli")
    with terminal(shared_node) as cli:
        # -u or --user and --pass, then -3, then what help there is.
        assert cli.send("AUTH", "cli", token_of("cli")) == "OK"
        if version == 3:
            assert cli.send("HELLO", "3")[b"proto"] == 3
        assert cli.send("SELECT", "0") == "OK"
        docs = cli.send("COMMAND", "DOCS")
        help_texts = docs if version == 3 else dict(zip(docs[::2], docs[1::2], strict=True))
        description = help_texts[b"rb.pub"]
        members = (
            description
            if version == 3
            else dict(zip(description[::2], description[1::2], strict=True))
        )
        assert members[b"summary"]
        assert members[b"group"]
        assert b"# Namespace" in cli.send("INFO", "namespace")
        assert cli.send("PING") == "PONG"


def test_commands_are_typed_in_lines_too(shared_node: OwnStorageNode) -> None:
    client = shared_node.namespace("lines")
    ask(client, "RB.TOPIC.CREATE", "news")
    with terminal(shared_node) as cli:
        assert cli.raw(b"AUTH lines %b\r\n" % token_of("lines").encode()) == "OK"
        assert cli.raw(b"RB.KV.SET greeting   hello\r\n") == "OK"
        assert cli.raw(b"RB.KV.GET greeting\n") == b"hello"
        assert cli.raw(b'rb.pub news ID 1 DATA {"n":1}\r\n')[0] == b"position"
        assert str(cli.raw(b"NO.SUCH thing\r\n")).startswith("ERR unknown command")


def test_a_piped_input_ends_with_its_mark(shared_node: OwnStorageNode) -> None:
    shared_node.namespace("piped")
    with terminal(shared_node) as cli:
        assert cli.send("AUTH", "piped", token_of("piped")) == "OK"
        lines = b"".join(b"RB.KV.SET k%d v%d\r\n" % (number, number) for number in range(500))
        first = cli.raw(lines + b"*2\r\n$4\r\nECHO\r\n$20\r\n" + MARK + b"\r\n")
        replies = [first, *(cli.reply() for _ in range(500))]
        assert replies == ["OK"] * 500 + [MARK]


def test_a_uri_without_a_name_is_the_administrators(shared_node: OwnStorageNode) -> None:
    with terminal(shared_node) as cli:
        # redis-cli -a and redis://:token@host send one word.
        assert cli.send("AUTH", TOKEN) == "OK"
        assert isinstance(cli.send("RB.NAMESPACE.LIST"), list)
        assert cli.send("QUIT") == "OK"
