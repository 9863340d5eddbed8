"""A dataset's tables as Spark's views, at one state.

As in `analytics.sql.tables`: the authority's files, without the rows on whose keys there are later
operations, and the rows after these. Columns of ids are joined with the table of their ID-key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 -- as in every program of Spark
from pyspark.sql import types as T  # noqa: N812

from analytics.query.files import ReadPlan
from analytics.rows.keys import from_plain
from analytics.schema import BY_ID, AnalyticsTable
from analytics.sql.spark.later_rows import LaterRows
from analytics.sql.tables import SqlTable, id_tables, touched_files
from analytics.table_definitions import ID, KEY

_TYPES: Mapping[str, T.DataType] = {
    "bool": T.BooleanType(),
    "int32": T.IntegerType(),
    "int64": T.LongType(),
    "double": T.DoubleType(),
    "string": T.StringType(),
    "date": T.DateType(),
    "timestamp": T.TimestampType(),
}


class SparkViews:
    """Creates the views of one statement in its session."""

    def __init__(
        self,
        session: SparkSession,
        tables: Mapping[str, AnalyticsTable],
        plans: Mapping[str, ReadPlan],
        later: Mapping[str, LaterRows],
    ) -> None:
        self._session = session
        self._tables = tables
        self._plans = plans
        self._later = later

    def create(self, one: SqlTable, columns: Sequence[str]) -> None:
        """Create the view of a table with some of its columns."""
        stored = self._stored(one, [*dict.fromkeys([*columns, *one.table.key])])
        self._with_keys(stored, one, columns).createOrReplaceTempView(quoted(one.name))

    def _with_keys(self, stored: DataFrame, one: SqlTable, columns: Sequence[str]) -> DataFrame:
        """Return columns with keys instead of ids."""
        for number, name in enumerate(columns):
            id_key = one.table.ids.get(name)
            if id_key is None:
                continue
            table = self._tables[id_key]
            by_id = SqlTable(id_key, table, table.view(BY_ID))
            ids = self._stored(by_id, [ID, KEY])
            id_column, key_column = f"id {number}", f"key {number}"
            ids = ids.select(
                F.col(quoted(ID)).alias(id_column), F.col(quoted(KEY)).alias(key_column)
            )
            same = F.col(quoted(name)) == F.col(quoted(id_column))
            stored = stored.join(ids, same, "left")
            stored = stored.withColumn(name, F.col(quoted(key_column)))
        return stored.select(*map(_column, columns))

    def _stored(self, one: SqlTable, columns: Sequence[str]) -> DataFrame:
        """Return columns as they are stored, at the state."""
        table, later = one.table, self._later.get(one.table.name)
        files = [file for file in self._plans[table.name].authority if file.view == one.view.name]
        bounds = None if later is None else (from_plain(later.low)[0], from_plain(later.high)[0])
        untouched, touched = touched_files(files, bounds)
        parts = []
        if untouched:
            parts.append(self._files([str(f.path) for f in untouched], table, columns))
        if later is not None:
            if touched:
                base = self._files([str(f.path) for f in touched], table, columns)
                keys = self._files([later.keys], table, table.key)
                parts.append(base.join(keys, [*table.key], "left_anti"))
            parts.append(self._files([later.rows], table, columns))
        if not parts:
            return self._session.createDataFrame([], _schema(table, columns))
        stored = parts[0].select(*map(_column, columns))
        for part in parts[1:]:
            stored = stored.union(part.select(*map(_column, columns)))
        return stored

    def _files(
        self, paths: Sequence[str], table: AnalyticsTable, columns: Sequence[str]
    ) -> DataFrame:
        """Return columns of files. Those that old files lack are null."""
        return self._session.read.schema(_schema(table, columns)).parquet(*paths)


def needed_tables(
    named: Mapping[str, SqlTable], names: Sequence[str], columns: frozenset[str]
) -> dict[str, list[str]]:
    """Return the columns to read of each table, including those of ID-keys, by its name."""
    needed: dict[str, list[str]] = {}
    for name in names:
        one = named[name]
        needed.setdefault(one.table.name, []).extend(columns_of(one, columns))
    for name in id_tables([named[name] for name in names], columns):
        needed.setdefault(name, []).extend([ID, KEY])
    return needed


def columns_of(one: SqlTable, columns: frozenset[str]) -> list[str]:
    """Return the columns of a table that a statement refers to."""
    return [column for column in one.view.columns if column.lower() in columns]


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _column(name: str) -> Column:
    return F.col(quoted(name))


def _schema(table: AnalyticsTable, columns: Sequence[str]) -> T.StructType:
    return T.StructType([T.StructField(n, _TYPES[table.columns[n]]) for n in columns])
