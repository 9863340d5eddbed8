"""Datasets in SQLAlchemy 2, for reading: `rillbase://KEY@HOST[:PORT]/DATASET`.

    engine = create_engine("rillbase://rbk_…@db.example.com/sales")

Needs the extra `sqlalchemy`, which registers the dialect. Statements are compiled as for
PostgreSQL, and to DuckDB's form where the two differ. The introspection reads the dataset's
definition.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

from sqlalchemy import literal, types
from sqlalchemy.dialects.postgresql import INTERVAL
from sqlalchemy.dialects.postgresql.base import PGCompiler, PGTypeCompiler
from sqlalchemy.engine import default, reflection
from sqlalchemy.engine.interfaces import BindTyping
from sqlalchemy.exc import ArgumentError, NoSuchTableError
from sqlalchemy.sql.compiler import IdentifierPreparer

from rillbase import dbapi
from rillbase.shapes import Document

if TYPE_CHECKING:
    from sqlalchemy.engine import URL, Connection
    from sqlalchemy.engine.interfaces import (
        ReflectedColumn,
        ReflectedForeignKeyConstraint,
        ReflectedIndex,
        ReflectedPrimaryKeyConstraint,
        ReflectedTableComment,
    )

_LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
#: Options in a URL's query.
_OPTIONS = frozenset({"freshness", "timeout", "tenant"})
#: Joins the names of a table and of one of its views.
_VIEW_SEPARATOR = "__"
#: The prefix of the type of a column with an ID-key's keys.
_ID_PREFIX = "id:"
#: The columns of an ID-key's table.
_KEY, _ID = "key", "id"


class StructType(types.UserDefinedType[dict[str, object]]):
    """The type of a column whose keys have several parts."""

    cache_ok = True

    def __init__(self, **fields: str) -> None:
        """The fields have types of a definition."""
        self.fields = tuple(fields.items())

    def get_col_spec(self, **_: object) -> str:
        members = ", ".join(f"{name} {_NAMES[kind]}" for name, kind in self.fields)
        return f"STRUCT({members})"


class _QuotedIdentifiers(IdentifierPreparer):
    """Quotes all names, as DuckDB reserves other words than PostgreSQL. Tables have no schema."""

    @staticmethod
    def schema_for_object(_: object) -> str:  # type: ignore[override]
        return ""

    def _requires_quotes(self, value: str) -> bool:
        return True


class _StatementCompiler(PGCompiler):
    """Compiles statements for DuckDB."""

    def render_bind_cast(self, type_: Any, dbapi_type: Any, sqltext: str) -> str:
        return f"CAST({sqltext} AS {self.dialect.type_compiler_instance.process(dbapi_type)})"

    def visit_regexp_match_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        # `~` is true only if the whole text matches.
        text, pattern = self.process(binary.left, **kw), self.process(binary.right, **kw)
        flags = binary.modifiers["flags"]
        options = f", {self.process(literal(flags), literal_binds=True)}" if flags else ""
        return f"regexp_matches({text}, {pattern}{options})"

    def visit_not_regexp_match_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return f"NOT {self.visit_regexp_match_op_binary(binary, operator, **kw)}"


class _TypeCompiler(PGTypeCompiler):
    """Compiles types for DuckDB."""

    def visit_FLOAT(self, type_: Any, **kw: Any) -> str:  # noqa: N802 -- a name of SQLAlchemy
        # FLOAT has only 32 bits.
        return "DOUBLE"

    def visit_DOUBLE(self, type_: Any, **kw: Any) -> str:  # noqa: N802 -- a name of SQLAlchemy
        return "DOUBLE"


class _CastDate(types.Date):
    """A date, whose parameters are texts."""

    render_bind_cast = True


class _CastTime(types.Time):
    """A time of day, whose parameters are texts."""

    render_bind_cast = True


class _CastInterval(INTERVAL):
    """An interval, whose parameters are texts."""

    render_bind_cast = True

    @classmethod
    def adapt_emulated_to_native(  # type: ignore[override]
        cls, interval: types.Interval, **_: Any
    ) -> _CastInterval:
        return cls(precision=interval.second_precision)


@dataclass(frozen=True, slots=True)
class _Relation:
    """A table or a view, as statements name it."""

    columns: Mapping[str, types.TypeEngine[Any]]
    #: Empty for a view.
    primary_key: tuple[str, ...]
    is_view: bool = False


class RillbaseDialect(default.DefaultDialect):
    """Connects to a dataset, compiles statements, and reads the definition."""

    name = "rillbase"
    driver = "https"
    statement_compiler = _StatementCompiler
    type_compiler_cls = _TypeCompiler
    preparer = _QuotedIdentifiers
    colspecs = {types.Date: _CastDate, types.Time: _CastTime, types.Interval: _CastInterval}
    bind_typing = BindTyping.RENDER_CASTS
    supports_statement_cache = True
    supports_native_boolean = True
    supports_native_decimal = True
    supports_default_values = False
    supports_sane_rowcount = False
    div_is_floordiv = False
    postfetch_lastrowid = False
    max_identifier_length = 255
    #: For the compiler of PostgreSQL.
    _backslash_escapes = False
    _supports_jsonb_subscripting = False

    def __init__(self, **options: Any) -> None:
        # A parameter that a statement has twice is one `$1`, so that GROUP BY can repeat an
        # expression with parameters.
        super().__init__(**{"paramstyle": "numeric_dollar", **options})

    @classmethod
    def import_dbapi(cls) -> ModuleType:
        return dbapi

    def create_connect_args(self, url: URL) -> tuple[list[Any], dict[str, Any]]:
        if not url.host or not url.database or "/" in url.database:
            raise ArgumentError("Expected rillbase://KEY@HOST[:PORT]/DATASET.")
        if unknown := set(url.query) - _OPTIONS:
            raise ArgumentError(f"Unknown options of a rillbase URL: {', '.join(sorted(unknown))}.")
        plain = "http" if url.host in _LOCAL_HOSTS else "https"
        scheme = url.drivername.partition("+")[2] or plain
        host = f"[{url.host}]" if ":" in url.host else url.host
        port = f":{url.port}" if url.port else ""
        options: dict[str, Any] = {**url.query, "dataset": url.database}
        if options.get("freshness", "any") != "any":
            options["freshness"] = float(options["freshness"])
        if "timeout" in options:
            options["timeout"] = float(options["timeout"])
        return [f"{scheme}://{host}{port}", url.password or url.username], options

    def _get_default_schema_name(self, connection: Connection) -> str:
        return connection.engine.url.database or ""

    def get_schema_names(self, connection: Connection, **kw: Any) -> list[str]:
        return [self._get_default_schema_name(connection)]

    def get_table_names(
        self, connection: Connection, schema: str | None = None, **kw: Any
    ) -> list[str]:
        relations = self._relations(connection, schema, **kw)
        return sorted(name for name, one in relations.items() if not one.is_view)

    def get_view_names(
        self, connection: Connection, schema: str | None = None, **kw: Any
    ) -> list[str]:
        relations = self._relations(connection, schema, **kw)
        return sorted(name for name, one in relations.items() if one.is_view)

    def has_table(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> bool:
        return table_name in self._relations(connection, schema, **kw)

    def get_columns(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[ReflectedColumn]:
        one = self._relation(connection, table_name, schema, **kw)
        return [
            {"name": name, "type": kind, "nullable": name not in one.primary_key, "default": None}
            for name, kind in one.columns.items()
        ]

    def get_pk_constraint(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> ReflectedPrimaryKeyConstraint:
        one = self._relation(connection, table_name, schema, **kw)
        return {"constrained_columns": [*one.primary_key], "name": None}

    def get_foreign_keys(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[ReflectedForeignKeyConstraint]:
        self._relation(connection, table_name, schema, **kw)
        return []

    def get_indexes(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[ReflectedIndex]:
        self._relation(connection, table_name, schema, **kw)
        return []

    def get_table_comment(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> ReflectedTableComment:
        self._relation(connection, table_name, schema, **kw)
        return {"text": None}

    def _relation(
        self, connection: Connection, table_name: str, schema: str | None, **kw: Any
    ) -> _Relation:
        relation = self._relations(connection, schema, **kw).get(table_name)
        if relation is None:
            raise NoSuchTableError(table_name)
        return relation

    def _relations(
        self, connection: Connection, schema: str | None, **kw: Any
    ) -> Mapping[str, _Relation]:
        """Return what a schema contains. The only schema is the dataset."""
        if schema not in (None, self._get_default_schema_name(connection)):
            return {}
        return self._all_relations(connection, **kw)

    @reflection.cache
    def _all_relations(self, connection: Connection, **_: Any) -> Mapping[str, _Relation]:
        opened = cast("dbapi.SqlConnection", connection.connection.dbapi_connection)
        return _relations_of(opened.definition())


def _relations_of(definition: Document) -> dict[str, _Relation]:
    """Return the tables and views by the names that statements use."""
    id_keys = definition["id_keys"]
    relations = {name: _id_table(kind) for name, kind in id_keys.items()}
    for name, table in definition["tables"].items():
        columns = {n: _column_type(kind, id_keys) for n, kind in table["columns"].items()}
        relations[name] = _Relation(columns, tuple(table["key"]))
        for view, described in table["views"].items():
            shown = {n: columns[n] for n in described["columns"]}
            relations[f"{name}{_VIEW_SEPARATOR}{view}"] = _Relation(shown, (), is_view=True)
    return relations


def _id_table(kind: str | Mapping[str, str]) -> _Relation:
    """Return an ID-key's table. Keys with several parts also have a column for each."""
    parts = {} if isinstance(kind, str) else kind
    stored = {_KEY: kind if isinstance(kind, str) else "string", _ID: "int64", **parts}
    return _Relation({name: _TYPES[type_] for name, type_ in stored.items()}, (_KEY,))


def _column_type(kind: str, id_keys: Mapping[str, Any]) -> types.TypeEngine[Any]:
    if not kind.startswith(_ID_PREFIX):
        return _TYPES[kind]
    key = id_keys[kind.removeprefix(_ID_PREFIX)]
    return _TYPES[key] if isinstance(key, str) else StructType(**key)


#: The types of a definition.
_TYPES: Mapping[str, types.TypeEngine[Any]] = {
    "bool": types.BOOLEAN(),
    "int32": types.INTEGER(),
    "int64": types.BIGINT(),
    "double": types.DOUBLE(),
    "string": types.VARCHAR(),
    "date": types.DATE(),
    "timestamp": types.TIMESTAMP(timezone=True),
}
_NAMES: Mapping[str, str] = {"string": "VARCHAR", "int64": "BIGINT"}
