"""The SQL that is generated for Spark from a statement, and the statements that are rejected."""

from __future__ import annotations

import pytest

from analytics.sql.spark.grammar import Untranslatable
from analytics.sql.spark.translation import SparkStatement, translate
from tests.analytics.refused_sql import REFUSED

TABLES = {
    "orders": {"id": "int64", "customer": "string", "count": "int32", "at": "timestamp"},
    "stock": {"place": "string", "item": "int64"},
}
#: What Spark has and DuckDB does not, and what would let a statement out.
HOSTILE = (
    "SELECT reflect('java.lang.System', 'getProperty', 'user.dir')",
    "SELECT java_method('java.lang.Runtime', 'getRuntime')",
    "SELECT try_reflect('java.lang.System', 'exit', 1)",
    "SELECT transform(id) USING 'cat' FROM orders",
    "SELECT * FROM parquet.`/etc/passwd`",
    "SELECT * FROM text.`file:///etc/passwd`",
    'SELECT * FROM "parquet.`/etc/passwd`"',
    "SELECT * FROM read_files('/etc/passwd')",
    "SELECT * FROM '/etc/passwd'",
    "SELECT * FROM other",
    "SELECT * FROM global_temp.orders",
    "SELECT * FROM system.builtin.orders",
    "INSERT OVERWRITE DIRECTORY '/tmp/x' SELECT 1",
    "CREATE TABLE x AS SELECT 1",
    "SET spark.sql.ansi.enabled = false",
    "ADD JAR '/tmp/x.jar'",
    "SELECT 1; SELECT 2",
    "SELECT current_user()",
    "SELECT input_file_name() FROM orders",
    "SELECT version()",
    "SELECT raise_error('x')",
    "SELECT java_method('a', 'b') FROM orders",
    "SELECT id AS \"a`, reflect('x', 'y') AS `b\" FROM orders",
    'SELECT id AS "${env:PATH}" FROM orders',
)
#: Wrong statements that read nothing. DuckDB, which describes their columns, refuses them.
HARMLESS = {
    "SELECT * FROM (WITH hidden AS (SELECT 1) SELECT 1), hidden",
    "WITH a AS (SELECT * FROM b), b AS (SELECT 1) SELECT * FROM a",
    "SELECT sum(id) EXPORT_STATE FROM orders",
    "SELECT",
    "SELECT id FROM orders GROUP BY customer",
}


def translated(sql: str, *parameters: object) -> SparkStatement:
    return translate(sql, TABLES, [*parameters])  # type: ignore[list-item]


@pytest.mark.parametrize("statement", HOSTILE)
def test_what_is_not_in_the_lists_is_rejected(statement: str) -> None:
    with pytest.raises(Untranslatable):
        translated(statement)


@pytest.mark.parametrize("statement", sorted(REFUSED.keys() - HARMLESS))
def test_what_duckdb_must_not_execute_is_rejected_too(statement: str) -> None:
    with pytest.raises(Untranslatable):
        translated(statement)


def test_no_text_of_a_statement_is_in_the_sql() -> None:
    statement = """
        SELECT /*+ BROADCAST(secret) */ customer || 'secret''s `${env:SECRET}` \\' AS a -- secret
        FROM orders WHERE customer LIKE 'secret%_' AND customer IN ('secret', $1)
    """
    spark = translated(statement, "secret\n';")
    assert "secret" not in spark.text.lower()
    assert "/*" not in spark.text
    assert {"secret\n';", "secret", "secret%_"} <= {*spark.texts.values()}


@pytest.mark.parametrize(
    "condition",
    [
        "customer LIKE '%a%b'",
        "customer LIKE '%a_b%c%'",
        "customer LIKE customer",
        "customer ~ '(a+)+b'",
        "customer SIMILAR TO 'a*'",
        "replace(customer, 'a', 'aaaaaaaaaaaa') = ''",
        "repeat(customer, 1000000) = ''",
    ],
)
def test_costly_functions_of_one_value_are_rejected(condition: str) -> None:
    with pytest.raises(Untranslatable):
        translated(f"SELECT count(*) FROM orders WHERE {condition}")


def test_a_statement_names_what_it_reads() -> None:
    spark = translated(
        "WITH a AS (SELECT ID AS n FROM Orders) SELECT n, item FROM a JOIN STOCK ON n = Item"
    )
    assert {*spark.tables} == {"orders", "stock"}
    assert {"id", "item"} <= spark.columns
    assert "customer" not in spark.columns


@pytest.mark.parametrize(
    "statement",
    [
        f"SELECT {'(' * 3_000}1{')' * 3_000}",
        f"SELECT {'id / (' * 30}1{')' * 30} FROM orders",
        f"SELECT {'round(' * 30}1.0::double{')' * 30} FROM orders",
        f"SELECT {' + '.join(['id'] * 9_000)} FROM orders",
    ],
)
def test_deep_and_long_statements_are_rejected(statement: str) -> None:
    with pytest.raises(Untranslatable):
        translated(statement)


@pytest.mark.parametrize(
    "statement",
    [
        # Spark has no row for a set without columns if there are none to group.
        "SELECT n FROM (SELECT count(*) AS n FROM orders GROUP BY ROLLUP (customer)) AS x",
        "WITH a AS (SELECT count(*) AS n FROM orders GROUP BY CUBE (customer)) SELECT n FROM a",
        "SELECT 1 UNION SELECT count(*) FROM orders GROUP BY GROUPING SETS (customer, ())",
        "SELECT (SELECT count(*) FROM orders GROUP BY GROUPING SETS (ROLLUP (customer), id))",
        # Its IN is false instead of null, unless it filters rows.
        "SELECT customer IN (SELECT place FROM stock) FROM orders",
        "SELECT id FROM orders WHERE customer NOT IN (SELECT place FROM stock) OR id > 1",
        "SELECT id FROM orders WHERE NOT (id > 1 OR customer IN (SELECT place FROM stock))",
        "SELECT id FROM orders WHERE (customer IN (SELECT place FROM stock)) IS NULL",
        # It limits rows before it correlates them.
        "SELECT (SELECT place FROM stock WHERE item = id ORDER BY place LIMIT 1) FROM orders",
        # sqlglot moves common tables to the beginning of the statement.
        "SELECT count(*) FROM orders, (WITH orders AS (SELECT 1 AS q) SELECT * FROM orders) AS x",
        "WITH a AS (SELECT 1 AS x) SELECT (WITH a AS (SELECT 2 AS x) SELECT x FROM a), x FROM a",
        # It makes numbers of texts.
        "SELECT '01' UNION SELECT 1",
        "SELECT customer FROM orders UNION ALL (SELECT id FROM orders)",
        "SELECT lag(count, 1, 1.5) OVER (ORDER BY id) FROM orders",
        "SELECT id AS count FROM orders ORDER BY count + 0",
        "SELECT * FROM (SELECT id, id FROM orders) AS x ORDER BY 1",
        "SELECT at AT TIME ZONE 'EST' FROM orders",
        "SELECT at AT TIME ZONE 'Europe/Chisinau' FROM orders",
    ],
)
def test_what_spark_computes_otherwise_is_rejected(statement: str) -> None:
    with pytest.raises(Untranslatable):
        translated(statement)
