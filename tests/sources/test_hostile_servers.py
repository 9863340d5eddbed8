"""A misbehaving server of a tenant costs little, and does not affect other tenants."""

from __future__ import annotations

import asyncio
import os
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from struct import pack
from typing import TYPE_CHECKING, Any

import pytest
import requests

from tests.caller import Caller, problem, with_key
from tests.sources.hostile import (
    COPY_BOTH,
    DONE,
    READY,
    Client,
    ConnectionHandler,
    challenge,
    columns,
    copy_data,
    hostile_server,
    logged_in,
    message,
    row,
    wal,
)
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.sources.upstream import Database

BEGIN = wal(b"B" + pack("!QqI", 30_000_000, 0, 1))
COMMIT = wal(b"C" + pack("!BQQq", 0, 30_000_000, 30_000_001, 0))
RELATION = wal(
    b"R"
    + pack("!I", 16384)
    + b"public\0t\0d"
    + pack("!H", 2)
    + b"\1id\0"
    + pack("!Ii", 23, -1)
    + b"\0name\0"
    + pack("!Ii", 25, -1)
)


def inserted(identity: bytes, name: bytes) -> bytes:
    cells = b"".join(b"t" + pack("!I", len(item)) + item for item in (identity, name))
    return wal(b"I" + pack("!I", 16384) + b"N" + pack("!H", 2) + cells)


def answering(part: bytes, act: Callable[[Client], object]) -> ConnectionHandler:
    """Behave correctly except for one statement."""

    def misbehave(client: Client, text: bytes) -> bool:
        if part not in text:
            return False
        act(client)
        return True

    return logged_in(misbehave)


def streaming(act: Callable[[Client], object]) -> ConnectionHandler:
    """Behave until changes are asked for."""

    def begin(client: Client) -> None:
        client.send(COPY_BOTH)
        act(client)
        client.hang()

    return answering(b"START_REPLICATION", begin)


def endless_rows(client: Client) -> None:
    client.send(message(b"1"), message(b"2"), columns(23, 25, 16))
    client.flood(row(b"1", b"logical", b"t") * 1000)


def endless_notices(client: Client) -> None:
    client.flood(message(b"A", b"\0\0\0\1channel\0" + b"x" * 5000 + b"\0"))


def demanding_many_iterations(client: Client) -> None:
    challenge(client, "2147483647")
    client.hang()


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@dataclass
class DeclaredSource:
    """A declared source, and the response."""

    caller: Caller
    path: str
    answer: requests.Response

    def details(self) -> dict[str, Any]:
        body: dict[str, Any] = self.caller.get(self.path).json()
        return body

    def until_state(self, state: str) -> dict[str, Any]:
        wait_until(lambda: self.details()["state"] == state, what=f"the source to be {state}")
        return self.details()


def declare_source(server: str, url: str) -> DeclaredSource:
    """Declare a source of a new collection at a server."""
    from tests.documents.collection import make_collection
    from tests.sources.upstream import collections

    things = make_collection(server)
    caller = with_key(server, things.account.admin_key)
    path = f"{collections(things)}/{things.name}/source"
    return DeclaredSource(caller, path, caller.post(path, {"connection": url, "table": "t"}))


def follow_hostile(server: str, url: str) -> DeclaredSource:
    """Declare a source that is accepted."""
    declared = declare_source(server, url)
    assert declared.answer.status_code == 201, declared.answer.text
    return declared


@pytest.mark.parametrize(
    ("behaviour", "code"),
    [
        (demanding_many_iterations, "protocol_violation"),
        (answering(b"server_version_num", endless_rows), "message_too_large"),
        (answering(b"atttypid", endless_notices), "message_too_large"),
        (
            answering(
                b"server_version_num",
                lambda c: c.send(columns(23, 23), row(b"x", b"1"), DONE, READY),
            ),
            "protocol_violation",
        ),
        (
            answering(b"indisprimary", lambda c: c.send(columns(25), row(b"x"), DONE, READY)),
            "protocol_violation",
        ),
    ],
)
def test_a_server_that_misbehaves_is_refused_when_it_is_declared(
    server: str, behaviour: ConnectionHandler, code: str
) -> None:
    with hostile_server(behaviour) as url:
        declared = declare_source(server, url)
    refusal = problem(declared.answer, 400, "invalid_source")
    assert [error["code"] for error in refusal["errors"]] == [code]


@pytest.mark.parametrize(
    ("act", "code"),
    [
        (lambda c: c.flood(b"d" + pack("!I", 1_000_000_000) + b"x" * 60_000), "message_too_large"),
        (endless_notices, "message_too_large"),
        (lambda c: c.flood(os.urandom(50_000)), None),
        (lambda c: c.send(BEGIN, wal(b"I" + pack("!IB", 16384, 78)), COMMIT), "protocol_violation"),
        (lambda c: c.send(BEGIN, inserted(b"1", b"\xff"), COMMIT), "protocol_violation"),
        (lambda c: c.send(BEGIN, inserted(b'1},"x":{', b"a"), COMMIT), "protocol_violation"),
        (lambda c: c.send(BEGIN, inserted(b"1", b"a\0b"), COMMIT), "document_refused"),
        (lambda c: c.send(wal(b"B" + pack("!QqI", 2**64 - 1, 0, 1))), "protocol_violation"),
    ],
)
@pytest.mark.usefixtures("following")
def test_a_misbehaving_stream_is_halted_with_a_reason(
    server: str, act: Callable[[Client], object], code: str | None
) -> None:
    with hostile_server(streaming(act)) as url:
        followed = follow_hostile(server, url)
        details = followed.until_state("halted")
        assert code in (None, details["condition"]["code"])
        # What cannot be removed there is removed here.
        assert followed.caller.delete(followed.path).status_code == 204


@pytest.mark.usefixtures("following")
def test_pings_of_a_client_that_never_reads_use_no_memory(server: str, database: Database) -> None:
    from tests.sources.upstream import follow

    keepalives = copy_data(b"k" + pack("!QqB", 30_000_000, 0, 1)) * 1000
    before = peak_bytes()
    ends_at_s = time.monotonic() + 2
    with hostile_server(
        streaming(lambda c: c.flood(keepalives, lambda: time.monotonic() > ends_at_s))
    ) as url:
        followed = follow_hostile(server, url)
        followed.until_state("live")
        # Others are followed meanwhile.
        database.run("CREATE TABLE t (id int PRIMARY KEY, v int)", "INSERT INTO t VALUES (1, 1)")
        other = follow(server, database, "t")
        other.until_count(1)
        wait_until(lambda: time.monotonic() > ends_at_s, what="all to be asked")
    assert peak_bytes() - before < 64 * 1024 * 1024


@pytest.mark.usefixtures("following")
def test_a_source_whose_server_never_answers_can_be_changed_and_removed(server: str) -> None:
    with hostile_server(answering(b"confirmed_flush_lsn", Client.hang)) as url:
        followed = follow_hostile(server, url)
        wait_until(lambda: followed.details()["state"] != "starting", what="it to be asked")
        assert followed.caller.patch(followed.path, {"paused": True}).status_code == 200
        followed.until_state("paused")


async def test_a_cancelled_query_waits_for_no_answer(caplog: pytest.LogCaptureFixture) -> None:
    from sources.connection import conninfo, parse_target
    from sources.upstream.session import session

    with hostile_server(answering(b"SELECT", Client.hang)) as url:
        info = conninfo(parse_target(url), ["127.0.0.1"])
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2), session(info) as connection:
                await connection.execute("SELECT 1")
    # The driver waits for 5 s and says so.
    assert "not terminated" not in caplog.text
