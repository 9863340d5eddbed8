"""Tables that cannot be followed are rejected when they are declared, with the reason."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import psycopg
import pytest

from tests.caller import problem

if TYPE_CHECKING:
    from tests.documents.collection import CollectionClient
    from tests.sources.upstream import Database


@pytest.fixture
def things(server: str) -> CollectionClient:
    from tests.documents.collection import make_collection

    return make_collection(server)


@pytest.mark.parametrize(
    ("statements", "members", "code"),
    [
        (["CREATE TABLE other (id int PRIMARY KEY)"], {}, "no_such_table"),
        (["CREATE TABLE t (v int)"], {}, "no_key"),
        (["CREATE TABLE t (id int UNIQUE, v int)"], {"key": ["id"]}, "no_key"),
        (["CREATE TABLE t (id int NOT NULL, v int)"], {"key": ["id"]}, "no_key"),
        (["CREATE TABLE t (id int NOT NULL UNIQUE)"], {"key": ["id"]}, "replica_identity"),
        (
            ["CREATE TABLE t (id int PRIMARY KEY)", "ALTER TABLE t REPLICA IDENTITY NOTHING"],
            {},
            "replica_identity",
        ),
        (["CREATE TABLE t (id int PRIMARY KEY DEFERRABLE)"], {}, "no_key"),
        (["CREATE TABLE t (id int PRIMARY KEY, p point)"], {}, "unsupported_type"),
        (["CREATE TABLE t (id int PRIMARY KEY, p point[])"], {}, "unsupported_type"),
        (["CREATE TABLE t (id numeric PRIMARY KEY)"], {}, "unsupported_key"),
        (["CREATE TABLE t (id int PRIMARY KEY, _id int)"], {}, "reserved_name"),
        (["CREATE TABLE t (id int PRIMARY KEY)"], {"columns": ["v"]}, "no_such_column"),
        (["CREATE VIEW t AS SELECT 1 AS id"], {}, "not_a_table"),
        (["CREATE UNLOGGED TABLE t (id int PRIMARY KEY)"], {}, "not_a_table"),
    ],
)
def test_a_table_that_cannot_be_followed_is_refused(
    database: Database,
    things: CollectionClient,
    statements: list[str],
    members: dict[str, object],
    code: str,
) -> None:
    from tests.sources.upstream import declare

    database.run(*statements)
    refusal = problem(declare(things, database, table="t", **members), 400, "invalid_source")
    assert [error["code"] for error in refusal["errors"]] == [code]
    # Nothing has come of it.
    assert things.insert({"_id": 1})["version"] == 1


@pytest.mark.parametrize(
    "url",
    [
        "mysql://u:p@127.0.0.1/d",
        "postgresql://127.0.0.1/d",
        "postgresql://u:p@/d?host=/tmp",
        "postgresql://u:p@a,b/d",
        "postgresql://u:p@127.0.0.1/d?sslkey=/etc/passwd",
        "postgresql://u:p@127.0.0.1/d?sslmode=allow",
        "postgresql://u:p@127.0.0.1:22/d",
        "postgresql://u:p@10.0.0.1/d",
        "postgresql://u:p@169.254.169.254/d",
        "postgresql://u:p@[::ffff:127.0.0.1]/d",
    ],
)
def test_a_connection_that_is_not_allowed_is_rejected(
    database: Database, things: CollectionClient, url: str
) -> None:
    from tests.sources.upstream import declare

    refusal = problem(declare(things, database, connection=url, table="t"), 400, "invalid_source")
    assert refusal["errors"][0]["pointer"] == "/connection"


def test_networks_of_the_installations_own_can_be_allowed() -> None:
    from ipaddress import ip_network

    from sources.connection import may_be_called

    networks = [ip_network("10.1.0.0/16")]
    allowed = [
        may_be_called(address, allow_loopback=False, networks=networks)
        for address in ("10.1.2.3", "10.2.2.3", "127.0.0.1", "93.184.215.14", "::1")
    ]
    assert allowed == [True, False, False, True, False]


def test_errors_do_not_reveal_what_listens_in_our_networks(
    database: Database, things: CollectionClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sources.definitions import probe
    from tests.own_valkey import free_port
    from tests.sources.upstream import declare

    monkeypatch.setattr(probe, "INTERNAL_FAILURE_S", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        nothing = f"postgresql://u:p@127.0.0.1:{free_port()}/d?sslmode=disable"
        deaf = f"postgresql://u:p@127.0.0.1:{silent.getsockname()[1]}/d?sslmode=disable"
        urls = (nothing, deaf, database.url.replace("theirs", "wrong"))
        answers = [declare(things, database, connection=url, table="t") for url in urls]
    # A closed port and a rejected login take as long as a server that never responds.
    assert all(answer.elapsed.total_seconds() >= 1.0 for answer in answers)
    problems = [problem(answer, 422, "source_unreachable") for answer in answers]
    for answered in problems:
        answered.pop("request_id")
    assert problems[0] == problems[1] == problems[2]
    assert problems[0]["errors"][0]["code"] == "unreachable"


def test_the_owner_of_a_public_database_sees_its_error_message() -> None:
    from sources.conditions import of_error
    from sources.connection import conninfo, is_internal, parse_target

    target = parse_target("postgresql://u:p@db.example/d")
    assert not is_internal(conninfo(target, ["93.184.215.14"]))
    assert is_internal(conninfo(target, ["93.184.215.14", "10.1.2.3"]))
    assert is_internal("")
    refusal = psycopg.OperationalError('FATAL:  password authentication failed for user "u"')
    assert of_error(refusal, is_internal=False)[0] == "login_refused"
    assert of_error(refusal, is_internal=True)[0] == "unreachable"
    denied = psycopg.errors.InsufficientPrivilege("permission denied for table t")
    assert of_error(denied, is_internal=True)[0] == "forbidden"
