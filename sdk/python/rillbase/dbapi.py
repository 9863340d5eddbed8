"""Datasets by DB-API 2.0 (PEP 249), for reading.

    with connect("http://127.0.0.1:8080", "rbk_…", dataset="sales") as connection:
        cursor = connection.cursor()
        cursor.execute("SELECT customer, sum(amount) FROM orders WHERE id > ? GROUP BY 1", [100])
        for customer, amount in cursor:
            print(customer, amount)

All rows of a cursor are of one state of the dataset. With the extra `arrow`, a result has up to ten
million rows; without, ten thousand.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from types import TracebackType
from typing import Literal, NoReturn, Self, TypeAlias, TypeVar

from rillbase.datasets import SqlStatement
from rillbase.dbapi_errors import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,  # noqa: A004 -- PEP 249 prescribes the name
    as_dbapi_error,
)
from rillbase.errors import RillbaseError
from rillbase.shapes import Document
from rillbase.sql_parameters import bindable
from rillbase.sql_result import SqlResult, from_arrow, from_json
from rillbase.sync import Client

__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "Binary",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "SqlConnection",
    "SqlCursor",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "apilevel",
    "connect",
    "paramstyle",
    "threadsafety",
]

apilevel = "2.0"
#: Threads may share connections, but not cursors.
threadsafety = 2
#: `?`. `$1` and `$name` are available too.
paramstyle = "qmark"

#: The most rows of a result as Arrow, and as JSON.
MAX_ROWS, MAX_JSON_ROWS = 10_000_000, 10_000
_FIRST_WORD = re.compile(
    r"\A(?:\s|--[^\n]*(?:\n|\Z)|/\*.*?\*/)*([a-z]+)", re.DOTALL | re.IGNORECASE
)
_WRITES = frozenset(
    {
        *("insert", "update", "delete", "merge", "truncate", "copy"),
        *("create", "alter", "drop", "begin", "commit", "rollback"),
    }
)

T = TypeVar("T")
Freshness: TypeAlias = float | Literal["any"] | None
#: Name, type, and five members that are always None.
ColumnDescription: TypeAlias = tuple[str, str, None, None, None, None, None]


class SqlTypeGroup:
    """Equal to the names of several SQL types, as PEP 249 wants the objects for types to be."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and other.partition("(")[0] in self._names

    def __hash__(self) -> int:
        return hash(self._names)


STRING = SqlTypeGroup("VARCHAR")
BINARY = SqlTypeGroup("BLOB")
NUMBER = SqlTypeGroup(
    *("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE", "DECIMAL"),
    *("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"),
)
DATETIME = SqlTypeGroup("DATE", "TIME", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "INTERVAL")
ROWID = SqlTypeGroup()

Date, Time, Timestamp, Binary = datetime.date, datetime.time, datetime.datetime, bytes


def DateFromTicks(ticks: float) -> datetime.date:  # noqa: N802 -- PEP 249 prescribes the name
    """Return the date of a number of seconds since 1970."""
    return TimestampFromTicks(ticks).date()


def TimeFromTicks(ticks: float) -> datetime.time:  # noqa: N802 -- PEP 249 prescribes the name
    """Return the time of day of a number of seconds since 1970."""
    return TimestampFromTicks(ticks).time()


def TimestampFromTicks(ticks: float) -> datetime.datetime:  # noqa: N802 -- PEP 249 prescribes the name
    """Return the time of a number of seconds since 1970."""
    return datetime.datetime.fromtimestamp(ticks, datetime.UTC)


def connect(
    url: str,
    key: str | None = None,
    *,
    dataset: str,
    token: str | None = None,
    tenant: str | None = None,
    freshness: Freshness = None,
    timeout: float | None = None,
) -> SqlConnection:
    """Return a connection to a dataset. The server is called once a statement is executed.

    `key`, `token` and `tenant` are options of a client; `freshness` and `timeout` are those of its
    statements.

    Example:
        with connect("http://127.0.0.1:8080", "rbk_…", dataset="sales") as connection:
            cursor = connection.cursor()
            cursor.execute("SELECT customer FROM orders WHERE id = ?", [1])
            print(cursor.fetchone())  # ('ada',)
    """
    client = Client(url, key=key, token=token, tenant=tenant)
    return SqlConnection(client, dataset, freshness, timeout)


class SqlConnection:
    """A connection to a dataset, for threads to share."""

    def __init__(
        self,
        client: Client,
        dataset: str,
        freshness: Freshness = None,
        timeout: float | None = None,
    ) -> None:
        self._client = client
        self._dataset = client.dataset(dataset)
        self._freshness = freshness
        self._timeout = timeout
        self._is_closed = False

    def cursor(self) -> SqlCursor:
        """Return a cursor.

        Example:
            cursor = connection.cursor()
            print(cursor.rowcount)  # -1
        """
        self._check_open()
        return SqlCursor(self)

    def commit(self) -> None:
        """Do nothing: there are no transactions."""
        self._check_open()

    def rollback(self) -> None:
        """Do nothing: there are no transactions."""
        self._check_open()

    def close(self) -> None:
        """Close the connection and its cursors. Running statements are cancelled.

        Example:
            connection.close()
        """
        if not self._is_closed:
            self._is_closed = True
            self._client.close()

    def definition(self) -> Document:
        """Return the dataset's definition.

        Example:
            print(connection.definition()["tables"]["orders"]["key"])  # ['id']
        """
        return self._run(self._dataset.definition)

    def _result_of(
        self, sql: str, parameters: Sequence[object] | Mapping[str, object] | None
    ) -> SqlResult:
        """Execute a statement."""
        statement = SqlStatement(
            sql=sql,
            parameters=bindable(parameters) if parameters else None,
            limit=MAX_ROWS if _has_arrow() else MAX_JSON_ROWS,
            freshness=self._freshness,
            timeout=self._timeout,
        )
        return self._run(lambda: self._execute(statement))

    def _execute(self, statement: SqlStatement) -> SqlResult:
        if _has_arrow():
            table = self._dataset.to_arrow(statement)
            # The server does not say whether it has cut off rows.
            if table.num_rows >= MAX_ROWS:
                raise NotSupportedError(f"The result has {MAX_ROWS} rows or more: use LIMIT.")
            return from_arrow(table)
        answer = self._dataset.sql(statement)
        if answer.truncated:
            detail = f"The result has more than {MAX_JSON_ROWS} rows: install rillbase[arrow]."
            raise NotSupportedError(detail)
        return from_json(answer.columns, answer.rows)

    def _run(self, call: Callable[[], T]) -> T:
        self._check_open()
        try:
            return call()
        except RillbaseError as error:
            raise as_dbapi_error(error) from error
        except (TypeError, ValueError) as error:
            # A parameter that has no form in JSON.
            raise ProgrammingError(str(error)) from error

    def _check_open(self) -> None:
        if self._is_closed:
            raise InterfaceError("The connection is closed.")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _has_arrow() -> bool:
    try:
        import pyarrow  # noqa: F401, PLC0415 -- an extra
    except ImportError:
        return False
    return True


class SqlCursor:
    """Executes statements and returns their rows, all of one state of the dataset."""

    def __init__(self, connection: SqlConnection) -> None:
        self.connection = connection
        #: The number of rows that `fetchmany` returns by default.
        self.arraysize = 1
        self._result: SqlResult | None = None
        self._is_closed = False

    @property
    def description(self) -> list[ColumnDescription] | None:
        """The names and SQL types of the columns; None before a statement was executed.

        Example:
            cursor.execute("SELECT id FROM orders")
            print([column[:2] for column in cursor.description])  # [('id', 'BIGINT')]
        """
        if self._result is None:
            return None
        return [(name, kind, None, None, None, None, None) for name, kind in self._result.columns]

    @property
    def rowcount(self) -> int:
        """The number of rows of the result; -1 before a statement was executed.

        Example:
            cursor.execute("SELECT id FROM orders")
            print(cursor.rowcount)  # 1
        """
        return -1 if self._result is None else self._result.count

    def execute(
        self, operation: str, parameters: Sequence[object] | Mapping[str, object] | None = None
    ) -> Self:
        """Execute a statement.

        Parameters are the values of `?`, or of `$1`, `$2`, …; by name those of `$name`. A datetime
        without a time zone is in UTC.

        Example:
            cursor.execute("SELECT id, amount FROM orders WHERE customer = ?", ["ada"])
            for id_, amount in cursor:
                print(id_, amount)  # 1 9.5
        """
        self._check_open()
        self._result = None
        word = _FIRST_WORD.match(operation)
        if word is not None and word[1].lower() in _WRITES:
            raise NotSupportedError(f"Datasets are read-only in SQL: {word[1].upper()}.")
        self._result = self.connection._result_of(operation, parameters)
        return self

    def executemany(self, operation: str, parameters: object) -> NoReturn:
        """Raise: statements only read."""
        raise NotSupportedError("Datasets are read-only in SQL: execute statements one by one.")

    def fetchone(self) -> tuple[object, ...] | None:
        """Return the next row, or None after the last one.

        Example:
            cursor.execute("SELECT id FROM orders")
            print(cursor.fetchone())  # (1,)
        """
        return next(self._rows(), None)

    def fetchmany(self, size: int | None = None) -> list[tuple[object, ...]]:
        """Return the next rows.

        Example:
            cursor.execute("SELECT id FROM orders")
            print(cursor.fetchmany(100))  # [(1,)]
        """
        return list(islice(self._rows(), self.arraysize if size is None else size))

    def fetchall(self) -> list[tuple[object, ...]]:
        """Return all rows that were not fetched yet.

        Example:
            cursor.execute("SELECT id FROM orders")
            print(cursor.fetchall())  # [(1,)]
        """
        return list(self._rows())

    def close(self) -> None:
        """Release the rows.

        Example:
            cursor.close()
        """
        self._is_closed = True
        self._result = None

    def setinputsizes(self, sizes: object) -> None:
        """Do nothing, as PEP 249 allows."""

    def setoutputsize(self, size: object, column: object = None) -> None:
        """Do nothing, as PEP 249 allows."""

    def _rows(self) -> Iterator[tuple[object, ...]]:
        self._check_open()
        if self._result is None:
            raise ProgrammingError("No statement was executed.")
        return self._result.rows

    def _check_open(self) -> None:
        if self._is_closed:
            raise InterfaceError("The cursor is closed.")

    def __iter__(self) -> Iterator[tuple[object, ...]]:
        return self._rows()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
