"""Datasets: rows are uploaded, and queried as fresh as needed."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote, urlencode

from rillbase import ejson
from rillbase.http import ApiRequest
from rillbase.progress import Bar, Told
from rillbase.shapes import Direction, Document
from rillbase.sources import ARROW, LINES, RowOperation, Source, body_of
from rillbase.tables import Tabular, polars_of
from rillbase.writes.calls import new_key

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from rillbase.core import ClientCore

#: Timeout of an upload or a query over many rows, including retries.
LONG_S = 3_600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TableQuery:
    """A query of a dataset."""

    table: str
    columns: Sequence[str] | None = None
    filter: Mapping[str, object] | None = None
    group_by: Sequence[str] | None = None
    #: `{"posts": {"op": "count"}, "last": {"op": "max", "column": "at"}}`.
    aggregates: Mapping[str, Mapping[str, str]] | None = None
    having: Mapping[str, object] | None = None
    order: Sequence[tuple[str, Direction]] | None = None
    limit: int | None = None
    #: Seconds: includes everything committed longer ago. `any`: everything that has been merged.
    freshness: float | Literal["any"] | None = None
    #: Exactly this state, as long as it is retained.
    state: int | None = None
    #: The newest state at that time.
    as_of: str | datetime.datetime | None = None
    #: At least this state.
    since: int | None = None

    def body(self) -> Document:
        """Return the members of the query's body.

        Example:
            print(TableQuery(table="orders", limit=5).body())  # {'table': 'orders', 'limit': 5}
        """
        return _present(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlStatement:
    """A SELECT statement over all tables of a dataset."""

    sql: str
    #: The values of `$1`, `$2`, … or `?`; by name those of `$name`.
    parameters: Sequence[object] | Mapping[str, object] | None = None
    limit: int | None = None
    #: Seconds for the statement and the transfer of its result.
    timeout: float | None = None
    #: What executes the statement. By default, the number of rows that it reads decides.
    engine: Literal["auto", "duckdb", "spark"] | None = None
    #: As in a query.
    freshness: float | Literal["any"] | None = None
    state: int | None = None
    as_of: str | datetime.datetime | None = None
    since: int | None = None

    def body(self) -> Document:
        """Return the members of the statement's body.

        Example:
            print(SqlStatement(sql="SELECT 1", limit=5).body())  # {'sql': 'SELECT 1', 'limit': 5}
        """
        return _present(self)


def _present(asked: TableQuery | SqlStatement) -> Document:
    """Return the fields that have values, as members of a body."""
    members = {field.name: getattr(asked, field.name) for field in fields(asked)}
    if isinstance(asked.as_of, datetime.datetime):
        members["as_of"] = asked.as_of.isoformat()
    return {name: value for name, value in members.items() if value is not None}


@dataclass(frozen=True, slots=True)
class SqlRows(Tabular):
    """The result of a statement, at one state of all tables."""

    rows: list[Document]
    #: The names and types of the columns.
    columns: list[Document]
    #: Pass it as `since`, so that later answers are not older.
    state: int
    #: The age of the oldest upload that is missing from it; 0: none is missing.
    freshness_s: float
    #: Whether the limit has cut off rows.
    truncated: bool
    #: What has executed the statement.
    engine: str

    @property
    def documents(self) -> list[Document]:
        """The rows.

        Example:
            result = sales.sql("SELECT id FROM orders ORDER BY id")
            print(result.documents[0])  # {'id': 1}
        """
        return self.rows


@dataclass(frozen=True, slots=True)
class TableRows(Tabular):
    """Rows of one state."""

    rows: list[Document]
    #: Pass it as `since`, so that later answers are not older.
    state: int
    #: The age of the oldest upload that is missing from it; 0: none is missing.
    freshness_s: float
    #: What was read in each stage, and what was skipped.
    read: Document

    @property
    def documents(self) -> list[Document]:
        """The rows.

        Example:
            rows = sales.query(TableQuery(table="orders", order=[("id", 1)]))
            print(rows.documents[0]["customer"])  # ada
        """
        return self.rows


@dataclass(frozen=True, slots=True)
class Upload:
    """An upload, which is visible from now on."""

    id: str
    #: The state of the dataset that the upload created.
    state: int
    rows: int
    bytes: int


class AsyncDataset:
    """One dataset."""

    def __init__(self, core: ClientCore, name: str) -> None:
        self._core = core
        self._name = name

    @property
    def name(self) -> str:
        """The name of the dataset.

        Example:
            print(sales.name)  # sales
        """
        return self._name

    async def upload(
        self,
        source: Source,
        *,
        table: str,
        op: RowOperation = "insert",
        upload_id: str | None = None,
        progress: bool | Told = False,
    ) -> Upload:
        """Upload rows, all of them or none.

        The upload takes effect once, however often it is retried; with an id, even if another
        program sends it again. `progress` draws a bar in the terminal, or is called with the bytes
        sent and the total, in a thread of the client.

        Example:
            orders = [{"id": 1, "customer": "ada", "amount": 9.5}]
            uploaded = await sales.upload(orders, table="orders", upload_id="day-1")
            print(uploaded.rows)  # 1
        """
        body = body_of(source, table, op)
        named = {} if upload_id is None else {"id": upload_id}
        if body.content_type != LINES:
            named |= {"table": table, "op": op}
        bar = Bar(f"{self._name}.{table}") if progress is True else None
        on_progress = progress if callable(progress) else bar
        request = ApiRequest(
            "POST",
            self._path("uploads") + (f"?{urlencode(named)}" if named else ""),
            body.content.with_progress(on_progress),
            content_type=body.content_type,
            idempotency_key=new_key() if upload_id is None else None,
            timeout_s=LONG_S,
        )
        try:
            answer = await self._core.http.call(request)
        finally:
            if bar is not None:
                bar.end()
        return Upload(answer["id"], answer["state"], answer["rows"], answer["bytes"])

    async def query(self, asked: TableQuery) -> TableRows:
        """Run a query that returns at most 10,000 rows.

        Example:
            totals = TableQuery(
                table="orders",
                group_by=["customer"],
                aggregates={"orders": {"op": "count"}},
            )
            print((await sales.query(totals)).rows)  # [{'customer': 'ada', 'orders': 1}]
        """
        request = ApiRequest(
            "POST", self._path("query"), ejson.dumps(asked.body()), timeout_s=LONG_S
        )
        answer = await self._core.http.call(request)
        return TableRows(answer["rows"], answer["state"], answer["freshness_s"], answer["read"])

    async def sql(self, asked: SqlStatement | str) -> SqlRows:
        """Execute a SELECT statement that returns at most 10,000 rows.

        Example:
            result = await sales.sql("SELECT count(*) AS n FROM orders")
            print(result.rows[0]["n"] > 0)  # True
        """
        request = ApiRequest(
            "POST", self._path("sql"), ejson.dumps(_statement(asked).body()), timeout_s=LONG_S
        )
        answer = await self._core.http.call(request)
        names = ("rows", "columns", "state", "freshness_s", "truncated", "engine")
        return SqlRows(*(answer[name] for name in names))

    async def to_arrow(self, asked: TableQuery | SqlStatement) -> pyarrow.Table:
        """Return rows with the types of their columns. Needs the extra `arrow`.

        A query returns up to a million rows, a statement up to ten million. The schema's metadata
        has `rillbase.state` and `rillbase.freshness_s`.

        Example:
            table = await sales.to_arrow(TableQuery(table="orders"))
            print(table.column_names)  # ['id', 'customer', 'amount']
        """
        import pyarrow as pa  # noqa: PLC0415 -- an extra

        body = ejson.dumps(asked.body())
        path = self._path("query" if isinstance(asked, TableQuery) else "sql")
        request = ApiRequest("POST", path, body, accept=ARROW, timeout_s=LONG_S)
        return pa.ipc.open_stream(await self._core.http.call(request)).read_all()

    async def to_pandas(self, asked: TableQuery | SqlStatement) -> pandas.DataFrame:
        """Return the same rows as a data frame. Needs the extras `arrow` and `pandas`.

        Example:
            frame = await sales.to_pandas(TableQuery(table="orders"))
            print(frame["amount"].sum())  # 9.5
        """
        return (await self.to_arrow(asked)).to_pandas()

    async def to_polars(self, query: TableQuery | SqlStatement) -> polars.DataFrame:
        """Return the same rows as a Polars data frame. Needs the extra `polars`.

        Example:
            frame = await sales.to_polars(TableQuery(table="orders"))
            print(frame["amount"].sum())  # 9.5
        """
        return polars_of(await self.to_arrow(query))

    async def definition(self) -> Document:
        """Return the definition: the tables with their columns, keys and views.

        Example:
            definition = await sales.definition()
            print(definition["tables"]["orders"]["key"])  # ['id']
        """
        definition: Document = await self._core.http.call(ApiRequest("GET", self._address))
        return definition

    async def pipeline(self) -> Document:
        """Return the progress of uploads, and how much data queries have to read.

        Example:
            status = await sales.pipeline()
            print(status["state"])  # 1
        """
        status: Document = await self._core.http.call(ApiRequest("GET", self._path("pipeline")))
        return status

    @property
    def _address(self) -> str:
        return f"/v1/datasets/{quote(self._name, safe='')}"

    def _path(self, call: str) -> str:
        return f"{self._address}/{call}"


def _statement(asked: SqlStatement | str) -> SqlStatement:
    return SqlStatement(sql=asked) if isinstance(asked, str) else asked
