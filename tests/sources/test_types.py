"""How each column type is converted, without loss."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from sources.mapping.arrays import parse_array
from sources.mapping.kinds import mapper
from sources.mapping.moments import moment_ms

if TYPE_CHECKING:
    from tests.sources.upstream import Database

LONG = "123456789012345678901234567890123456789.5"
#: Type, SQL, and what a document has in canonical Extended JSON.
VALUES: list[tuple[str, str, Any]] = [
    ("smallint", "-3", {"$numberInt": "-3"}),
    ("int", "2147483647", {"$numberInt": "2147483647"}),
    ("bigint", "9007199254740993", {"$numberLong": "9007199254740993"}),
    ("numeric(10,2)", "1.5", {"$numberDecimal": "1.50"}),
    ("numeric", "0.000000000000000000000000000001", {"$numberDecimal": "1E-30"}),
    ("numeric", LONG, LONG),
    ("numeric", "'NaN'", {"$numberDecimal": "NaN"}),
    ("numeric", "'-Infinity'", {"$numberDecimal": "-Infinity"}),
    ("real", "0.1", {"$numberDouble": "0.1"}),
    ("double precision", "1e300", {"$numberDouble": "1.0E+300"}),
    ("double precision", "'-Infinity'", {"$numberDouble": "-Infinity"}),
    ("boolean", "true", True),
    ("text", "E'a\"\\n\\\\\u00fc'", 'a"\n\\\u00fc'),
    ("char(3)", "'a'", "a  "),
    ("uuid", "'A0EEBC99-9c0b-4ef8-bb6d-6bb9bd380a11'", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    ("date", "'1969-12-31'", {"$date": {"$numberLong": "-86400000"}}),
    (
        "timestamptz",
        "'2024-02-29 12:00:00.123999+02'",
        {"$date": {"$numberLong": "1709200800123"}},
    ),
    ("timestamp", "'0044-03-15 12:00 BC'", {"$date": {"$numberLong": "-63517780800000"}}),
    ("timestamp", "'infinity'", {"$maxKey": 1}),
    ("date", "'-infinity'", {"$minKey": 1}),
    ("interval", "'1 day 2 hours'", "1 day 02:00:00"),
    ("time", "'12:30'", "12:30:00"),
    ("bytea", "'\\x00ff'", {"$binary": {"base64": "AP8=", "subType": "00"}}),
    ("inet", "'10.0.0.1'", "10.0.0.1"),
    (
        "jsonb",
        '\'{"a":[1,null,{"b":1.5}],"n":12345678901234567890}\'',
        {
            "a": [{"$numberLong": "1"}, None, {"b": {"$numberDouble": "1.5"}}],
            "n": {"$numberDecimal": "12345678901234567890"},
        },
    ),
    ("json", '\'{"$oid": "x"}\'', '{"$oid": "x"}'),
    ("json", '\'{"a":1,"a":2}\'', {"a": {"$numberLong": "2"}}),
    ("jsonb", "'null'", None),
    (
        "int[]",
        "'{{1,2},{NULL,4}}'",
        [[{"$numberInt": "1"}, {"$numberInt": "2"}], [None, {"$numberInt": "4"}]],
    ),
    ("text[]", "array['a,b', 'NULL', NULL, '\"\\', '']", ["a,b", "NULL", None, '"\\', ""]),
    ("int[]", "'[5:6]={1,2}'", [{"$numberInt": "1"}, {"$numberInt": "2"}]),
    ("text[]", "'{}'", []),
    ("mood", "'sad'", "sad"),
    ("mood[]", "array['ok','sad']::mood[]", ["ok", "sad"]),
    ("positive", "7", {"$numberInt": "7"}),
    ("text", "NULL", None),
]


@pytest.mark.usefixtures("following")
def test_each_type_has_its_place_in_a_document(server: str, database: Database) -> None:
    """By a copy and by a change alike."""
    from tests.sources.upstream import follow

    columns = ", ".join(f"c{n} {kind}" for n, (kind, _, _) in enumerate(VALUES))
    row = ", ".join(value for _, value, _ in VALUES)
    database.run(
        "CREATE TYPE mood AS ENUM ('sad', 'ok')",
        "CREATE DOMAIN positive AS int CHECK (VALUE > 0)",
        f"CREATE TABLE t (id int PRIMARY KEY, {columns}, "
        "twice int GENERATED ALWAYS AS (id * 2) STORED)",
        f"INSERT INTO t VALUES (1, {row})",
    )
    followed = follow(server, database, "t")
    followed.until_state("live")
    # Roles may have styles of their own, which must not reach documents.
    database.run("SET LOCAL DateStyle = 'German'", f"INSERT INTO t VALUES (2, {row})")
    wanted = [value for _, _, value in VALUES]
    followed.until_count(2)
    for key in (1, 2):
        answer = followed.things.caller.get(
            f"{followed.things.path}/documents/~{key}", Rillbase_EJSON="canonical"
        )
        document = answer.json()["document"]
        assert list(document) == ["_id", "id", *(f"c{n}" for n in range(len(VALUES)))]
        items = [_plain(document[f"c{number}"]) for number in range(len(VALUES))]
        assert items == [_plain(value) for value in wanted]


def _plain(value: Any) -> Any:
    """Return a double as a number, since the same one can be written in several ways."""
    if isinstance(value, dict) and "$numberDouble" in value:
        return float(value["$numberDouble"])
    return value


KEYS = [
    ("a int, b text, PRIMARY KEY (a, b)", "(1, 'x'), (2, 'y')", {}),
    (
        "a date, b char(4), c boolean, d bigint, e uuid, PRIMARY KEY (a, b, c, d, e)",
        (
            "('0044-03-15 BC', 'ab', true, 9007199254740993, gen_random_uuid()), "
            "('infinity', 'c', false, 2, gen_random_uuid())"
        ),
        {},
    ),
    ("b int PRIMARY KEY, a text NOT NULL UNIQUE", "(1, 'k1'), (2, 'k2')", {"key": ["a"]}),
]


@pytest.mark.usefixtures("following")
@pytest.mark.parametrize(("columns", "rows", "members"), KEYS)
def test_a_key_leads_back_to_its_row(
    server: str, database: Database, columns: str, rows: str, members: dict[str, Any]
) -> None:
    """A copy deletes the documents whose rows are gone, and those only."""
    from tests.sources.upstream import follow

    database.run(f"CREATE TABLE t ({columns})", f"INSERT INTO t VALUES {rows}")
    if members:
        database.run("ALTER TABLE t REPLICA IDENTITY FULL")
    followed = follow(server, database, "t", **members)
    followed.until_count(2)
    followed.until_state("live")
    followed.admin.post(followed.path + ":rebuild")
    followed.until_copied_for("asked_for")
    versions = [item["version"] for item in followed.items()]
    assert versions == [1, 1]
    followed.admin.patch(followed.path, {"paused": True})
    followed.until_state("paused")
    database.run("DELETE FROM t WHERE ctid = (SELECT min(ctid) FROM t)")
    followed.admin.post(followed.path + ":rebuild")
    followed.admin.patch(followed.path, {"paused": False})
    followed.until_count(1)
    assert [item["version"] for item in followed.items()] == [1]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("{}", []),
        ("{1,NULL}", ["1", None]),
        ('{"NULL","a\\"b","c\\\\"}', ["NULL", 'a"b', "c\\"]),
        ("[0:1]={{a},{b}}", [["a"], ["b"]]),
    ],
)
def test_arrays_are_read_as_postgresql_writes_them(text: str, wanted: list[Any]) -> None:
    assert parse_array(text) == wanted


def test_moments_are_those_of_the_calendar() -> None:
    assert moment_ms("1970-01-01") == 0
    assert moment_ms("2000-02-29 23:59:59.9999+00") == 951_868_799_999
    assert moment_ms("0001-12-31 00:00:00 BC") == moment_ms("0001-01-01") - 86_400_000
    assert moment_ms("294276-12-31 23:59:59") == 9_224_318_015_999_000


@pytest.mark.parametrize("text", ["1e400", "-0.5e-3", "0", "1E+2", "-7.0", "1" * 60, "0.1"])
def test_numbers_of_json_keep_their_value(text: str) -> None:
    from decimal import Decimal

    write = mapper(3802, {})
    assert write is not None
    written = json.loads(write(text))
    result = next(iter(written.values())) if isinstance(written, dict) else written
    assert Decimal(result) == Decimal(text)
