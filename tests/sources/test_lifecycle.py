"""A source is declared, shown, paused, rebuilt and removed, and its collection is read-only."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tests.caller import problem, with_key
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.sources.upstream import Database, FollowedCollection

pytestmark = pytest.mark.usefixtures("following")
ROWS = ["CREATE TABLE t (id int PRIMARY KEY, v text)", "INSERT INTO t VALUES (1, 'a'), (2, 'b')"]


def row(number: int, text: str) -> dict[str, Any]:
    return {"_id": number, "id": number, "v": text}


@pytest.fixture
def followed(server: str, database: Database) -> FollowedCollection:
    from tests.sources.upstream import follow

    database.run(*ROWS)
    source = follow(server, database, "t")
    source.until_shows({"1": row(1, "a"), "2": row(2, "b")})
    source.until_state("live")
    return source


def slots(database: Database) -> int:
    ((count,),) = database.rows(
        "SELECT (SELECT count(*) FROM pg_replication_slots WHERE database = current_database()) "
        "+ (SELECT count(*) FROM pg_publication)"
    )
    return int(count)


def test_a_source_shows_its_state_but_no_password(followed: FollowedCollection) -> None:
    shown = followed.shown()
    assert shown["connection"].startswith("postgresql://postgres@127.0.0.1:")
    assert "theirs" not in str(shown)
    assert (shown["table"], shown["key"], shown["condition"]) == ("t", ["id"], None)
    assert (shown["copy_reason"], shown["rows_copied"]) == ("new", 2)
    wait_until(lambda: followed.shown()["slot_bytes"] is not None, what="the slot to be looked at")
    listed = followed.admin.get(followed.path.partition("/collections/")[0] + "/sources").json()
    assert [item["collection"] for item in listed["items"]] == [followed.things.name]


def test_only_the_source_writes_and_everybody_reads(followed: FollowedCollection) -> None:
    things = followed.things
    for answer in (
        things.caller.post(f"{things.path}/documents", {"_id": 9}),
        things.caller.put(f"{things.path}/documents/~9", {"_id": 9}),
        things.caller.delete(f"{things.path}/documents/~1"),
        things.caller.post(
            f"{things.path}/documents:bulk",
            {"operations": [{"insert": {"_id": 9}}], "ordered": False},
        ),
    ):
        problem(answer, 409, "collection_read_only")
    assert things.ids({"v": "b"}) == [2]
    collection = followed.path.removesuffix("/source")
    assert followed.admin.get(collection).json()["read_only"] is True
    ttl = {"ttl": {"field": "at", "after_s": 5}}
    problem(followed.admin.patch(collection, ttl), 400, "invalid_body")


def test_a_paused_source_resumes_at_its_position(
    followed: FollowedCollection, database: Database
) -> None:
    assert followed.admin.patch(followed.path, {"paused": True}).json()["paused"] is True
    followed.until_state("paused")
    database.run("UPDATE t SET v = 'later' WHERE id = 1")
    assert followed.documents()["1"] == row(1, "a")
    followed.admin.patch(followed.path, {"paused": False})
    followed.until_shows({"1": row(1, "later"), "2": row(2, "b")})
    assert followed.shown()["copy_reason"] == "new"


def test_a_removed_source_leaves_nothing_behind_but_documents(
    followed: FollowedCollection, database: Database
) -> None:
    assert slots(database) == 2
    assert followed.admin.delete(followed.path).status_code == 204
    problem(followed.admin.get(followed.path), 404, "not_found")
    followed.things.insert({"_id": 3})
    assert followed.things.ids() == [1, 2, 3]
    wait_until(lambda: slots(database) == 0, what="slot and publication to be dropped")


def test_a_dropped_collection_removes_its_source(
    followed: FollowedCollection, database: Database
) -> None:
    followed.admin.delete(followed.path.removesuffix("/source"))
    wait_until(lambda: slots(database) == 0, what="slot and publication to be dropped")


def test_a_rebuild_delivers_only_differences(
    followed: FollowedCollection, database: Database, postgres_url: str
) -> None:
    import psycopg

    with psycopg.connect(postgres_url) as ours:
        # As if a document had been damaged, and another one were too many.
        ours.execute(
            "DELETE FROM documents_document WHERE collection_id = %s AND version = 1 AND key = "
            "(SELECT max(key) FROM documents_document WHERE collection_id = %s)",
            [followed.things.collection.pk] * 2,
        )
    assert followed.admin.post(followed.path + ":rebuild").status_code == 202
    followed.until_copied_for("asked_for")
    followed.until_shows({"1": row(1, "a"), "2": row(2, "b")})
    answer = followed.things.caller.get(f"{followed.things.path}/documents/~1")
    assert answer.json()["version"] == 1


def test_a_collection_with_documents_gets_no_source(server: str, database: Database) -> None:
    from tests.documents.collection import make_collection
    from tests.sources.upstream import declare

    database.run(*ROWS)
    things = make_collection(server)
    things.insert({"_id": 1})
    problem(declare(things, database, table="t"), 409, "conflict")


def test_a_collection_has_one_source(followed: FollowedCollection, database: Database) -> None:
    from tests.sources.upstream import declare

    problem(declare(followed.things, database, table="t"), 409, "conflict")


def test_viewers_see_a_source_and_change_nothing(server: str, followed: FollowedCollection) -> None:
    from tenants.roles import Role
    from tests.caller import signed_in
    from tests.make import make_member

    viewer = signed_in(server, make_member(followed.things.account.tenant, Role.VIEWER))
    assert viewer.get(followed.path).status_code == 200
    problem(viewer.patch(followed.path, {"paused": True}), 403, "forbidden")


def test_other_tenants_see_no_source(server: str, followed: FollowedCollection) -> None:
    from tests.make import make_tenant

    stranger = with_key(server, make_tenant().admin_key)
    assert stranger.get(followed.path).status_code in (403, 404)


def errors_of(followed: FollowedCollection) -> dict[str, str]:
    """Return what the tenant's error log has of its sources, by code."""
    from tenants import error_log

    error_log.flush()
    listed = followed.admin.get(
        f"/api/v1/tenants/{followed.things.account.slug}/errors?area=source"
    )
    return {item["code"]: item["detail"] for item in listed.json()["items"]}


def listed(followed: FollowedCollection) -> list[dict[str, Any]]:
    result: list[dict[str, Any]] = followed.admin.get(
        f"/api/v1/tenants/{followed.things.account.slug}/sources"
    ).json()["items"]
    return result


@contextmanager
def refusing_connections(database: Database) -> Iterator[None]:
    """The database accepts no new connections."""
    allow = "UPDATE pg_database SET datallowconn = {} WHERE datname = current_database()"
    database.run(allow.format("false"))
    yield
    database.run(allow.format("true"))


def test_a_source_is_listed_until_nothing_of_it_is_left_in_its_database(
    followed: FollowedCollection, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sources.following import removal

    monkeypatch.setattr(removal, "RETRY_S", 0.1)
    with refusing_connections(database):
        followed.admin.delete(followed.path.removesuffix("/source"))
        wait_until(
            lambda: [item["condition"] is not None for item in listed(followed)] == [True],
            what="the removal to wait",
        )
        (shown,) = listed(followed)
        assert (shown["state"], shown["condition"]["code"]) == ("removing", "unreachable")
        assert shown["removing_until"] is not None
        assert list(errors_of(followed)) == ["source_removal_waits"]
        assert slots(database) == 2
    wait_until(lambda: listed(followed) == [], what="the removal to be done")
    assert slots(database) == 0


def test_leftovers_in_an_unreachable_database_are_reported_with_the_statements_that_drop_them(
    followed: FollowedCollection, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sources.following import removal
    from sources.models import source

    monkeypatch.setattr(removal, "RETRY_S", 0.1)
    monkeypatch.setattr(source, "GIVEN_UP_AFTER", datetime.timedelta())
    with refusing_connections(database):
        assert followed.admin.delete(followed.path).status_code == 204
        wait_until(lambda: listed(followed) == [], what="the removal to be given up")
        statements = errors_of(followed)["source_left_behind"]
    assert slots(database) == 2
    for statement in statements[statements.index("SELECT") :].split(";")[:2]:
        database.connection.execute(statement)
    assert slots(database) == 0
