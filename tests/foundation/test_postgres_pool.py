"""Sessions are lent again unless that would cost too much."""

from __future__ import annotations

import asyncio
import socket
from itertools import count

import psycopg
import pytest
import uvloop
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from foundation.postgres import PostgresSession, SessionPool, Statement
from foundation.postgres.pool import KEPT_BUFFER_BYTES
from foundation.postgres.session import Oid, int4

LENGTH = Statement("SELECT length($1)", (Oid.BYTEA,))
BACKEND = Statement("SELECT pg_backend_pid()")
BEGIN, FAIL = Statement("BEGIN"), Statement("SELECT 1 / 0")
ECHO = Statement("SELECT $1", (Oid.INT4,))
READY = b"Z\0\0\0\5I"
NOTICE = b"N\0\0\0\x2bSWARNING\0VWARNING\0C57P02\0Mterminating\0\0"
END = Statement("SELECT pg_terminate_backend($1, 5000)", (Oid.INT4,))


@pytest.mark.parametrize(("n_bytes", "sessions"), [(1_000, 1), (KEPT_BUFFER_BYTES + 1, 2)])
async def test_a_session_that_has_sent_very_much_is_not_kept(
    postgres_url: str, n_bytes: int, sessions: int
) -> None:
    pool = SessionPool(lambda: postgres_url, 1)
    backends = []
    for text in (b"x" * n_bytes, b"x"):
        async with pool.session() as session:
            length, backend = await session.run([(LENGTH, (text,)), (BACKEND, ())])
        assert length.integer(0, 0) == len(text)
        backends.append(backend.integer(0, 0))
    assert len(set(backends)) == sessions
    pool.close()


async def test_a_session_that_the_server_ended_is_not_lent_again(postgres_url: str) -> None:
    pool = SessionPool(lambda: postgres_url, 2)
    async with pool.session() as ended, pool.session() as other:
        (backend,) = await ended.run([(BACKEND, ())])
        number = backend.integer(0, 0)
        await other.run([(END, (int4(number),))])
    async with asyncio.timeout(5):
        while not ended.broken:  # noqa: ASYNC110 -- nothing reports it
            await asyncio.sleep(0.01)
    for _ in range(2):
        async with pool.session() as session:
            assert session is not ended
            await session.run([(BACKEND, ())])
    pool.close()


async def test_a_session_whose_rollback_was_cancelled_is_not_lent_again(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = SessionPool(lambda: postgres_url, 1)

    async def fail_and_leave() -> None:
        async with pool.session() as session:
            receive, calls = session._receive, count(1)

            async def receive_until_the_rollback() -> object:
                if next(calls) == 2 and (task := asyncio.current_task()) is not None:
                    task.cancel()
                return await receive()

            monkeypatch.setattr(session, "_receive", receive_until_the_rollback)
            await session.run([(BEGIN, ()), (FAIL, ())])

    with pytest.raises(asyncio.CancelledError):
        await asyncio.create_task(fail_and_leave())
    for number in range(3):
        async with pool.session() as session:
            (echoed,) = await session.run([(ECHO, (int4(number),))])
            assert echoed.integer(0, 0) == number
    pool.close()


def _relay_handshake(listener: socket.socket, postgres: tuple[str, int]) -> socket.socket:
    """Relay a connection until the server is ready for a statement; return the client's end."""
    client, _ = listener.accept()
    with socket.create_connection(postgres) as server:
        reply = b""
        while READY not in reply:
            server.sendall(client.recv(65_536))
            reply = server.recv(65_536)
            client.sendall(reply)
    return client


def test_a_statement_ends_when_its_connection_is_reset_behind_a_notice(postgres_url: str) -> None:
    """As by a server that is killed. uvloop, which servers use, reports a reset only once."""

    async def run() -> None:
        source = conninfo_to_dict(postgres_url)
        postgres = str(source["host"]), int(str(source["port"]))
        with socket.create_server(("127.0.0.1", 0)) as listener:
            relayed = asyncio.create_task(asyncio.to_thread(_relay_handshake, listener, postgres))
            port = listener.getsockname()[1]
            session = await PostgresSession.connect(
                make_conninfo(postgres_url, port=port, sslmode="disable", gssencmode="disable")
            )
            client = await relayed
        statement = asyncio.create_task(session.run([(BACKEND, ())]))
        await asyncio.sleep(0)
        # Without another iteration of the loop, so that the notice and the reset are one event. An
        # end that is closed before all was read is reset.
        with client:
            client.recv(1)
            client.sendall(NOTICE)
        with pytest.raises(psycopg.OperationalError):
            await asyncio.wait_for(statement, 10)
        session.close()

    uvloop.run(run())
