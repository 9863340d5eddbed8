"""Datasets by DB-API 2.0 and SQLAlchemy: rows and their types, errors, introspection."""

from __future__ import annotations

import datetime
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import registry

from rillbase import Client, SqlStatement, TableQuery, dbapi
from rillbase.dbapi_errors import as_dbapi_error
from rillbase.errors import CallTimeout, ClientClosed, RillbaseError, ServerError

if TYPE_CHECKING:
    from tests.analytics.dataset_client import DatasetClient

pytestmark = pytest.mark.timeout(300)

PYTHON_SDK = Path(__file__).resolve().parents[2] / "sdk" / "python"
AT = datetime.datetime(2026, 11, 21, 16, 30, 0, 123456, tzinfo=datetime.UTC)
DAY = datetime.timedelta(days=1)
SPAN = datetime.timedelta(days=32, seconds=3.5)
ORDERS: list[dict[str, Any]] = [
    {"id": 1, "customer": "ada", "amount": 2.5, "day": AT.date(), "at": AT, "paid": True},
    {"id": 2, "customer": "bob", "amount": 4.0, "day": AT.date(), "at": AT, "paid": False},
    {"id": 3, "customer": "ada", "amount": 8.0, "day": (AT + DAY).date(), "at": AT + DAY},
]
STOCK = [{"place": "ada", "item": 1, "pieces": 7}, {"place": "bob", "item": 1, "pieces": 9}]
MANY = 25_000


@pytest.fixture(scope="module")
def shop(server: str) -> DatasetClient:
    from tests.analytics.dataset_client import make_dataset

    dataset = make_dataset(server)
    with Client(server, key=dataset.account.admin_key) as db:
        db.dataset(dataset.name).upload(ORDERS, table="orders")
        db.dataset(dataset.name).upload(STOCK, table="stock")
    return dataset


@pytest.fixture(scope="module")
def key(shop: DatasetClient) -> str:
    from tests.make import make_key

    return make_key(shop.account.tenant, scopes=["analytics:read"])


@pytest.fixture
def connection(server: str, shop: DatasetClient, key: str) -> Iterator[dbapi.SqlConnection]:
    with dbapi.connect(server, key, dataset=shop.name) as connection:
        yield connection


@pytest.fixture
def engine(server: str, shop: DatasetClient, key: str) -> Iterator[sa.Engine]:
    project = tomllib.loads((PYTHON_SDK / "pyproject.toml").read_text())["project"]
    for name, place in project["entry-points"]["sqlalchemy.dialects"].items():
        registry.register(name, *place.split(":"))
    address = sa.make_url(server)
    engine = sa.create_engine(f"rillbase://{key}@{address.host}:{address.port}/{shop.name}")
    yield engine
    engine.dispose()


@pytest.fixture
def tables(engine: sa.Engine) -> sa.MetaData:
    tables = sa.MetaData()
    tables.reflect(engine, views=True)
    return tables


def test_a_cursor_returns_rows_with_the_types_of_python(connection: dbapi.SqlConnection) -> None:
    assert (dbapi.apilevel, dbapi.threadsafety, dbapi.paramstyle) == ("2.0", 2, "qmark")
    cursor = connection.cursor()
    assert (cursor.description, cursor.rowcount) == (None, -1)
    cursor.execute(
        'SELECT id, customer, amount, day, "at", paid, 1.50::DECIMAL(9, 2) AS price,'
        " 'ab'::BLOB AS bytes, [1, 2] AS list, INTERVAL '1 month 2 days 3.5 seconds' AS span"
        " FROM orders WHERE id = 1"
    )
    assert cursor.fetchall() == [
        (1, "ada", 2.5, AT.date(), AT, True, Decimal("1.50"), b"ab", [1, 2], SPAN)
    ]
    assert cursor.description is not None
    assert [column[:2] for column in cursor.description] == [
        ("id", "BIGINT"),
        ("customer", "VARCHAR"),
        ("amount", "DOUBLE"),
        ("day", "DATE"),
        ("at", "TIMESTAMP WITH TIME ZONE"),
        ("paid", "BOOLEAN"),
        ("price", "DECIMAL(9,2)"),
        ("bytes", "BLOB"),
        ("list", "INTEGER[]"),
        ("span", "INTERVAL"),
    ]
    assert [kind == dbapi.NUMBER for _, kind, *_ in cursor.description].count(True) == 3
    assert [kind == dbapi.DATETIME for _, kind, *_ in cursor.description].count(True) == 3
    assert ("VARCHAR" == dbapi.STRING, "BLOB" == dbapi.BINARY) == (True, True)  # noqa: SIM300
    (total,) = cursor.execute("SELECT sum(id) FROM orders").fetchone() or ()
    assert (total, type(total)) == (6, int)


def test_rows_are_fetched_one_by_one_in_parts_and_by_iteration(
    connection: dbapi.SqlConnection,
) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM range(10)")
        assert cursor.rowcount == 10
        assert cursor.fetchone() == (0,)
        assert cursor.fetchmany() == [(1,)]
        cursor.arraysize = 3
        assert cursor.fetchmany() == [(2,), (3,), (4,)]
        assert cursor.fetchmany(2) == [(5,), (6,)]
        assert [*cursor] == [(7,), (8,), (9,)]
        assert (cursor.fetchone(), cursor.fetchmany(), cursor.fetchall()) == (None, [], [])


def test_a_result_has_more_rows_than_an_answer_in_json(connection: dbapi.SqlConnection) -> None:
    cursor = connection.cursor().execute("SELECT i, i::VARCHAR FROM range(?) t(i)", [MANY])
    assert cursor.rowcount == MANY
    assert sum(int(text) for _, text in cursor) == MANY * (MANY - 1) // 2  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("condition", "parameters", "ids"),
    [
        ("customer = ? AND amount > ?", ["ada", 3], [3]),
        ("customer = $1 OR customer = $1", ["bob"], [2]),
        ("customer = $name", {"name": "bob"}, [2]),
        ('"at" = ?', [AT], [1, 2]),
        ('"at" = ?', [AT.replace(tzinfo=None)], [1, 2]),
        ("day > ?", [AT.date()], [3]),
        ("paid IS NOT DISTINCT FROM ?", [None], [3]),
        ("paid = ?", [True], [1]),
        ("id IN (SELECT unnest(?))", [(1, 3)], [1, 3]),
        ("amount = ?", [Decimal("2.5")], [1]),
        ('"at" + ?::INTERVAL > ?', [DAY, AT + DAY], [3]),
        ("customer = '?' OR id = ?", [2], [2]),
    ],
)
def test_parameters_have_the_types_of_python(
    connection: dbapi.SqlConnection, condition: str, parameters: Any, ids: list[int]
) -> None:
    sql = f"SELECT id FROM orders WHERE {condition} ORDER BY id"
    assert connection.cursor().execute(sql, parameters).fetchall() == [(id_,) for id_ in ids]


@pytest.mark.parametrize(
    ("sql", "parameters", "error", "text"),
    [
        ("SELECT nothing FROM orders", None, dbapi.ProgrammingError, "nothing"),
        ("SELEC 1", None, dbapi.ProgrammingError, "syntax"),
        ("SELECT ?", [], dbapi.ProgrammingError, "parameter"),
        ("SELECT ?", [object()], dbapi.ProgrammingError, "object"),
        ("SELECT 'a'::INT", None, dbapi.DataError, "Could not convert"),
        ("-- rows\n DELETE FROM orders", None, dbapi.NotSupportedError, "read-only.*DELETE"),
    ],
)
def test_an_error_has_a_class_of_pep_249(
    connection: dbapi.SqlConnection,
    sql: str,
    parameters: Any,
    error: type[Exception],
    text: str,
) -> None:
    cursor = connection.cursor()
    with pytest.raises(error, match=f"(?i){text}"):
        cursor.execute(sql, parameters)
    assert issubclass(error, dbapi.DatabaseError)
    assert cursor.description is None
    with pytest.raises(dbapi.ProgrammingError):
        cursor.fetchone()
    with pytest.raises(dbapi.NotSupportedError):
        cursor.executemany(sql, [])


def test_errors_of_the_server_and_of_the_network_are_operational(
    server: str, shop: DatasetClient
) -> None:
    for error in (
        *(RillbaseError("connection_lost", ""), CallTimeout(1)),
        *(ServerError({"code": "rate_limited"}, 429), ServerError({"code": "unavailable"}, 503)),
        ServerError({"code": "query_too_expensive"}, 422),
    ):
        assert type(as_dbapi_error(error)) is dbapi.OperationalError
    assert type(as_dbapi_error(ClientClosed())) is dbapi.InterfaceError
    with (
        dbapi.connect(server, "rbk_wrong", dataset=shop.name) as connection,
        pytest.raises(dbapi.OperationalError) as rejected,
    ):
        connection.cursor().execute("SELECT 1")
    assert isinstance(rejected.value.__cause__, ServerError)


def test_a_closed_connection_or_cursor_executes_nothing(connection: dbapi.SqlConnection) -> None:
    cursor = connection.cursor().execute("SELECT 1")
    cursor.close()
    with pytest.raises(dbapi.InterfaceError):
        cursor.fetchone()
    other = connection.cursor()
    connection.commit()
    connection.rollback()
    connection.close()
    connection.close()
    with pytest.raises(dbapi.InterfaceError):
        other.execute("SELECT 1")
    with pytest.raises(dbapi.InterfaceError):
        connection.cursor()


def test_a_connection_has_a_freshness(server: str, shop: DatasetClient, key: str) -> None:
    with dbapi.connect(server, key, dataset=shop.name, freshness="any") as connection:
        cursor = connection.cursor().execute("SELECT count(*) FROM orders")
        # No row has been merged yet.
        assert cursor.fetchall() == [(0,)]


def test_a_result_that_would_be_cut_off_is_an_error(
    connection: dbapi.SqlConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dbapi, "MAX_ROWS", 3)
    cursor = connection.cursor()
    assert len(cursor.execute("SELECT * FROM range(2)").fetchall()) == 2
    with pytest.raises(dbapi.NotSupportedError, match="LIMIT"):
        cursor.execute("SELECT * FROM range(4)")


def test_without_arrow_rows_have_the_same_types_and_are_fewer(
    connection: dbapi.SqlConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = (
        'SELECT id, day, "at", amount, sum(id) OVER () AS total, 1.5::DECIMAL(4, 1) AS price,'
        " 'ab'::BLOB AS bytes, TIME '10:30:00' AS time, paid,"
        " INTERVAL '1 month -2 days 3.5 seconds' AS span,"
        ' "at"::TIMESTAMP AS local'
        " FROM orders ORDER BY id"
    )
    cursor = connection.cursor()
    with_arrow = cursor.execute(sql).fetchall()
    described = cursor.description
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert cursor.execute(sql).fetchall() == with_arrow
    assert cursor.description == described
    with pytest.raises(dbapi.NotSupportedError, match="arrow"):
        cursor.execute("SELECT * FROM range(?)", [MANY])


def test_threads_share_a_connection(connection: dbapi.SqlConnection) -> None:
    together = threading.Barrier(4)

    def count(number: int) -> object:
        together.wait()
        return connection.cursor().execute("SELECT sum(i) FROM range(?) t(i)", [number]).fetchone()

    with ThreadPoolExecutor(4) as threads:
        sums = [*threads.map(count, [10, 100, 1_000, 10_000])]
    assert sums == [(45,), (4_950,), (499_500,), (49_995_000,)]


def test_the_package_imports_no_extra() -> None:
    code = (
        "import sys, rillbase, rillbase.dbapi;"
        "print([n for n in ('sqlalchemy', 'pyarrow', 'polars', 'pandas') if n in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(PYTHON_SDK)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"


def test_frames_of_polars(server: str, shop: DatasetClient, key: str) -> None:
    with Client(server, key=key) as db:
        dataset = db.dataset(shop.name)
        frame = dataset.to_polars(SqlStatement(sql="SELECT id, day FROM orders ORDER BY id"))
        assert frame.rows() == [(order["id"], order["day"]) for order in ORDERS]
        rows = dataset.query(TableQuery(table="orders", columns=["id"], order=[("id", -1)]))
        assert rows.to_polars()["id"].to_list() == [3, 2, 1]


def test_introspection_reads_the_definition(engine: sa.Engine, shop: DatasetClient) -> None:
    inspector = sa.inspect(engine)
    assert inspector.get_schema_names() == [shop.name]
    assert inspector.default_schema_name == shop.name
    assert inspector.get_table_names() == ["orders", "stock"]
    assert inspector.get_table_names(shop.name) == ["orders", "stock"]
    assert inspector.get_table_names("other") == []
    assert inspector.get_view_names() == ["orders__by_customer"]
    assert inspector.get_pk_constraint("stock")["constrained_columns"] == ["place", "item"]
    assert inspector.has_table("orders")
    assert inspector.has_table("orders__by_customer")
    assert not inspector.has_table("nothing")
    with pytest.raises(sa.exc.NoSuchTableError):
        inspector.get_columns("nothing")
    columns = {column["name"]: column for column in inspector.get_columns("orders")}
    assert {name: str(column["type"]) for name, column in columns.items()} == {
        "id": "BIGINT",
        "customer": "VARCHAR",
        "amount": "DOUBLE",
        "count": "INTEGER",
        "paid": "BOOLEAN",
        "day": "DATE",
        "at": "TIMESTAMP",
    }
    assert [name for name, column in columns.items() if not column["nullable"]] == ["id"]
    assert (inspector.get_indexes("orders"), inspector.get_foreign_keys("orders")) == ([], [])


def test_keys_with_several_parts_are_structs(server: str, shop: DatasetClient) -> None:
    from rillbase.sqlalchemy_dialect import _relations_of

    definition = {
        "id_keys": {"file": {"host": "string", "path": "string"}, "user": "int64"},
        "tables": {
            "reads": {
                "columns": {"file": "id:file", "user": "id:user", "n": "int32"},
                "key": ["file", "user"],
                "views": {},
            }
        },
    }
    shown = {
        name: [f"{column} {kind.compile()}" for column, kind in one.columns.items()]
        for name, one in _relations_of(definition).items()
    }
    assert shown == {
        "reads": ["file STRUCT(host VARCHAR, path VARCHAR)", "user BIGINT", "n INTEGER"],
        "file": ["key VARCHAR", "id BIGINT", "host VARCHAR", "path VARCHAR"],
        "user": ["key BIGINT", "id BIGINT"],
    }


def test_statements_of_sqlalchemy(engine: sa.Engine, tables: sa.MetaData) -> None:
    orders, stock = tables.tables["orders"], tables.tables["stock"]
    view = tables.tables["orders__by_customer"]
    day = sa.func.date_trunc("day", orders.c.at)
    cases: list[tuple[sa.Executable, list[tuple[object, ...]]]] = [
        (
            sa.select(orders.c.id, stock.c.pieces)
            .join(stock, stock.c.place == orders.c.customer)
            .where(orders.c.amount > 3, stock.c.pieces.in_([7, 9]))
            .order_by(orders.c.id.desc()),
            [(3, 7), (2, 9)],
        ),
        (
            sa.select(orders.c.customer, sa.func.count(), sa.func.sum(orders.c.amount).label("n"))
            .group_by(orders.c.customer)
            .having(sa.func.count() > 1)
            .order_by(sa.desc("n")),
            [("ada", 2, 10.5)],
        ),
        (sa.select(orders.c.id).order_by(orders.c.id).limit(1).offset(1), [(2,)]),
        (
            sa.select(day, sa.func.count()).group_by(day).order_by(day),
            [(AT.replace(hour=0, minute=0, microsecond=0) + n * DAY, 2 - n) for n in (0, 1)],
        ),
        (sa.select(orders.c.id).where(orders.c.day == AT.date(), orders.c.paid), [(1,)]),
        (sa.select(orders.c.id).where(orders.c.at > AT), [(3,)]),
        (sa.select(orders.c.id).where(orders.c.paid.is_(False)), [(2,)]),
        (sa.select(orders.c.id).where(orders.c.at - DAY == AT), [(3,)]),
        (sa.select(sa.func.max(orders.c.at) - sa.func.min(orders.c.at)), [(DAY,)]),
        (
            sa.select(*map(sa.literal, (AT.date(), AT.time(), DAY))),
            [(AT.date(), AT.time(), DAY)],
        ),
        (sa.select(view.c.id).where(view.c.customer.ilike("B%")), [(2,)]),
        (sa.select(orders.c.id).where(orders.c.customer.regexp_match("o.$")), [(2,)]),
        (sa.select(orders.c.id).where(orders.c.customer.regexp_match("O", "i")), [(2,)]),
        (sa.select(orders.c.id).where(~orders.c.customer.regexp_match("d")), [(2,)]),
        (
            sa.select(sa.cast(orders.c.amount, sa.Integer), sa.cast("0.1", sa.Float)).where(
                orders.c.id == 3
            ),
            [(8, 0.1)],
        ),
        (
            sa.select(sa.extract("month", orders.c.at), orders.c.id / 2, orders.c.id // 2).where(
                orders.c.id == 3
            ),
            [(11, 1.5, 1)],
        ),
        (
            sa.select(
                sa.func.row_number().over(partition_by=orders.c.customer, order_by=orders.c.id)
            ).order_by(orders.c.id),
            [(1,), (1,), (2,)],
        ),
        (
            sa.select(sa.literal("50%'\\"), sa.true(), sa.case((orders.c.id > 0, "a"), else_="b"))
            .select_from(orders)
            .where(orders.c.id == 1),
            [("50%'\\", True, "a")],
        ),
    ]
    twice = sa.union_all(*(sa.select(orders.c.id),) * 2).subquery()
    with engine.connect() as connection:
        for statement, expected in cases:
            assert [*map(tuple, connection.execute(statement))] == expected, str(statement)
        assert len(connection.execute(sa.select(twice.c.id).distinct()).all()) == 3
        dated = sa.select(orders.c.id).where(orders.c.day > AT.date(), orders.c.at > AT)
        literal = dated.compile(engine, compile_kwargs={"literal_binds": True})
        assert connection.exec_driver_sql(str(literal)).all() == [(3,)]


def test_a_table_may_have_the_schema_of_the_dataset(engine: sa.Engine, shop: DatasetClient) -> None:
    orders = sa.Table("orders", sa.MetaData(), autoload_with=engine, schema=shop.name)
    with engine.connect() as connection:
        assert connection.scalar(sa.select(sa.func.max(orders.c.id))) == 3


def test_pandas_reads_a_statement_and_a_table(engine: sa.Engine) -> None:
    sql = sa.text("SELECT i AS n, i * 0.5::DOUBLE AS half FROM range(:many) t(i)")
    frame = pd.read_sql(sql, engine, params={"many": MANY})
    assert (len(frame), frame["n"].sum()) == (MANY, MANY * (MANY - 1) // 2)
    assert [str(kind) for kind in frame.dtypes] == ["int64", "float64"]
    table = pd.read_sql_table("orders", engine)
    assert sorted(table["customer"]) == ["ada", "ada", "bob"]
    assert str(table["at"].dtype).startswith("datetime64")


def test_an_error_in_sqlalchemy_wraps_that_of_the_driver(
    engine: sa.Engine, tables: sa.MetaData
) -> None:
    orders = tables.tables["orders"]
    with engine.connect() as connection:
        with pytest.raises(sa.exc.ProgrammingError, match="nothing"):
            connection.execute(sa.select(sa.column("nothing")).select_from(orders))
        with pytest.raises(sa.exc.NotSupportedError, match="read-only"):
            connection.execute(orders.insert(), {"id": 9})
        with pytest.raises(sa.exc.NotSupportedError, match="read-only"):
            connection.execute(orders.delete())


@pytest.mark.parametrize(
    ("url", "address", "key"),
    [
        ("rillbase://k@db.example.com/sales", "https://db.example.com", "k"),
        ("rillbase://:k@db.example.com:8443/sales", "https://db.example.com:8443", "k"),
        ("rillbase://k@localhost:8080/sales", "http://localhost:8080", "k"),
        ("rillbase://k@[::1]:8080/sales", "http://[::1]:8080", "k"),
        ("rillbase+https://k@localhost/sales", "https://localhost", "k"),
        ("rillbase+http://k@db/sales", "http://db", "k"),
    ],
)
def test_a_url_names_the_server_the_key_and_the_dataset(url: str, address: str, key: str) -> None:
    from rillbase.sqlalchemy_dialect import RillbaseDialect

    read = RillbaseDialect().create_connect_args(sa.make_url(url))
    assert read == ([address, key], {"dataset": "sales"})


def test_a_url_has_options() -> None:
    from rillbase.sqlalchemy_dialect import RillbaseDialect

    def options(query: str) -> dict[str, Any]:
        url = sa.make_url(f"rillbase://k@db/sales{query}")
        return RillbaseDialect().create_connect_args(url)[1]

    assert options("?freshness=any&tenant=t") == {
        "dataset": "sales",
        "freshness": "any",
        "tenant": "t",
    }
    assert options("?freshness=2&timeout=60")["timeout"] == 60.0
    with pytest.raises(sa.exc.ArgumentError, match="fresh"):
        options("?fresh=any")
    with pytest.raises(sa.exc.ArgumentError, match="DATASET"):
        RillbaseDialect().create_connect_args(sa.make_url("rillbase://k@db"))


def test_arrow_types_have_names_in_sql() -> None:
    from rillbase.sql_result import sql_type

    assert [
        sql_type(kind)
        for kind in (
            *(pa.decimal128(38, 0), pa.decimal128(5, 2), pa.list_(pa.int32()), pa.timestamp("us")),
            *(pa.struct({"a": pa.int8()}), pa.dictionary(pa.uint8(), pa.string())),
        )
    ] == ["HUGEINT", "DECIMAL(5,2)", "INTEGER[]", "TIMESTAMP", "STRUCT", "VARCHAR"]
