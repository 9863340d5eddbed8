"""Changes of a table, a slot or a server are detected, and either repaired or reported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.sources.upstream import Database, FollowedCollection

pytestmark = pytest.mark.usefixtures("following")
CREATE = "CREATE TABLE t (id int PRIMARY KEY, v text)"


def row(number: int, text: str, **more: object) -> dict[str, Any]:
    return {"_id": number, "id": number, "v": text, **more}


@pytest.fixture
def followed(server: str, database: Database) -> FollowedCollection:
    from tests.sources.upstream import follow

    database.run(CREATE, "INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    source = follow(server, database, "t")
    source.until_shows({"1": row(1, "a"), "2": row(2, "b")})
    source.until_state("live")
    return source


def test_an_emptied_table_empties_the_collection(
    followed: FollowedCollection, database: Database
) -> None:
    database.run("TRUNCATE t", "INSERT INTO t VALUES (3, 'c')")
    followed.until_shows({"3": row(3, "c")})
    followed.until_copied_for("truncated")


def test_a_column_that_is_added_or_dropped_is_in_all_documents_or_in_none(
    followed: FollowedCollection, database: Database
) -> None:
    database.run("ALTER TABLE t ADD w int DEFAULT 7")
    followed.until_shows({"1": row(1, "a", w=7), "2": row(2, "b", w=7)})
    followed.until_copied_for("table_changed")
    database.run("ALTER TABLE t DROP w", "UPDATE t SET v = 'x' WHERE id = 1")
    followed.until_shows({"1": row(1, "x"), "2": row(2, "b")})


def test_a_changed_type_is_rejected_until_the_owner_confirms_it(
    followed: FollowedCollection, database: Database
) -> None:
    database.run("ALTER TABLE t ALTER v TYPE int USING ascii(v)", "UPDATE t SET v = 5")
    shown = followed.until_condition("type_changed")
    assert shown["state"] == "halted"
    assert "v" in shown["condition"]["detail"]
    assert followed.documents() == {"1": row(1, "a"), "2": row(2, "b")}
    followed.admin.post(followed.path + ":rebuild")
    followed.until_shows({"1": {**row(1, ""), "v": 5}, "2": {**row(2, ""), "v": 5}})


def test_a_table_without_a_key_halts_the_source_and_not_its_writers(
    followed: FollowedCollection, database: Database
) -> None:
    database.run("ALTER TABLE t DROP CONSTRAINT t_pkey")
    followed.until_condition("no_key")
    wait_until(
        lambda: not database.rows("SELECT 1 FROM pg_publication"), what="writers to be let go"
    )
    # PostgreSQL would refuse this for a published table whose rows have no identity.
    database.run("UPDATE t SET v = 'free' WHERE id = 1", "ALTER TABLE t ADD PRIMARY KEY (id)")
    followed.until_shows({"1": row(1, "free"), "2": row(2, "b")})


def test_a_dropped_table_halts_the_source(followed: FollowedCollection, database: Database) -> None:
    database.run("DROP TABLE t")
    followed.until_condition("no_such_table")
    assert set(followed.documents()) == {"1", "2"}
    database.run(CREATE, "INSERT INTO t VALUES (2, 'b'), (5, 'e')")
    followed.until_shows({"2": row(2, "b"), "5": row(5, "e")})


def test_a_lost_slot_is_replaced_and_only_differences_are_delivered(
    followed: FollowedCollection, database: Database
) -> None:
    followed.admin.patch(followed.path, {"paused": True})
    followed.until_state("paused")
    ((slot,),) = database.rows(
        "SELECT slot_name FROM pg_replication_slots WHERE database = current_database()"
    )
    wait_until(lambda: _is_dropped(database, slot), what="the slot to be dropped")
    database.run("DELETE FROM t WHERE id = 1", "INSERT INTO t VALUES (3, 'c')")
    followed.admin.patch(followed.path, {"paused": False})
    followed.until_shows({"2": row(2, "b"), "3": row(3, "c")})
    followed.until_copied_for("slot_lost")
    answer = followed.things.caller.get(f"{followed.things.path}/documents/~2")
    assert answer.json()["version"] == 1


def _is_dropped(database: Database, slot: str) -> bool:
    import psycopg

    try:
        database.rows(f"SELECT pg_drop_replication_slot('{slot}')")
    except psycopg.errors.ObjectInUse:
        return False
    except psycopg.errors.UndefinedObject:
        pass
    return True


def test_a_slot_that_was_advanced_by_others_is_detected(
    followed: FollowedCollection, database: Database
) -> None:
    followed.admin.patch(followed.path, {"paused": True})
    followed.until_state("paused")
    # A slot is moved no further than to what has reached the disk.
    database.run("SET LOCAL synchronous_commit = on", "UPDATE t SET v = 'missed' WHERE id = 1")

    def moved() -> bool:
        import psycopg

        try:
            database.rows(
                "SELECT pg_replication_slot_advance(slot_name, pg_current_wal_lsn()) "
                "FROM pg_replication_slots WHERE database = current_database()"
            )
        except psycopg.errors.ObjectInUse:
            return False
        return True

    wait_until(moved, what="the slot to be free")
    followed.admin.patch(followed.path, {"paused": False})
    followed.until_shows({"1": row(1, "missed"), "2": row(2, "b")})
    followed.until_copied_for("slot_moved")


def test_a_publication_of_fewer_operations_causes_a_new_copy(
    followed: FollowedCollection, database: Database
) -> None:
    ((name,),) = database.rows("SELECT pubname FROM pg_publication")
    database.run(f"ALTER PUBLICATION {name} SET (publish = 'insert')")
    database.run("DELETE FROM t WHERE id = 1")
    followed.until_shows({"2": row(2, "b")})
    followed.until_copied_for("publication_changed")


def test_an_unused_slot_that_retains_too_much_is_dropped(
    followed: FollowedCollection, database: Database, settings_environment: pytest.MonkeyPatch
) -> None:
    followed.admin.patch(followed.path, {"paused": True})
    followed.until_state("paused")
    settings_environment.setenv("RILLBASE_SOURCE_SLOT_BYTES", "1")
    database.run("UPDATE t SET v = repeat('x', 10000) WHERE id = 1")
    wait_until(
        lambda: (
            not database.rows(
                "SELECT 1 FROM pg_replication_slots WHERE database = current_database()"
            )
        ),
        what="the slot to be dropped",
    )
    settings_environment.setenv("RILLBASE_SOURCE_SLOT_BYTES", str(2**32))
    followed.admin.patch(followed.path, {"paused": False})
    followed.until_shows({"1": row(1, "x" * 10_000), "2": row(2, "b")})
    followed.until_copied_for("slot_too_large")


def test_a_row_that_the_collection_refuses_halts_the_source(
    followed: FollowedCollection, database: Database
) -> None:
    collection = followed.path.removesuffix("/source")
    schema = {"type": "object", "properties": {"v": {"maxLength": 3}}}
    assert followed.admin.patch(collection, {"schema": schema}).status_code == 200
    database.run("UPDATE t SET v = 'long one' WHERE id = 1", "UPDATE t SET v = 'c' WHERE id = 2")
    assert "document" in followed.until_condition("document_refused")["condition"]["code"]
    assert followed.documents() == {"1": row(1, "a"), "2": row(2, "b")}
    followed.admin.patch(collection, {"schema": None})
    followed.admin.patch(followed.path, {"paused": False})
    followed.until_shows({"1": row(1, "long one"), "2": row(2, "c")})


def test_an_unavailable_database_is_retried(
    followed: FollowedCollection, database: Database
) -> None:
    name = database.rows("SELECT current_database()")[0][0]
    database.rows(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        f"WHERE datname = '{name}' AND pid <> pg_backend_pid()"
    )
    database.run("UPDATE t SET v = 'after' WHERE id = 1")
    followed.until_shows({"1": row(1, "after"), "2": row(2, "b")})
    followed.until_state("live")
    assert followed.shown()["copy_reason"] == "new"
