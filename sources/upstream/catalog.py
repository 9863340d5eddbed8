"""Looks up a table in a server's catalogue, and checks whether it can be a source."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from psycopg import AsyncConnection, sql

from sources.conditions import SourceUnsuitable
from sources.mapping.kinds import TypeFacts, Types, mapper, may_be_key
from sources.mapping.shape import ID, DocumentShape, SourceColumn

logger = logging.getLogger(__name__)

MIN_VERSION = 140_000
#: The deadline for all catalogue queries together.
LOOK_TIMEOUT_S = 30.0
MAX_TYPE_ROUNDS = 40

_SERVER = (
    "SELECT current_setting('server_version_num')::int, current_setting('wal_level'), "
    "pg_is_in_recovery()"
)
_TABLE = (
    "SELECT c.oid, c.relkind, c.relpersistence, c.relreplident, "
    "c.relkind = 'r' AND EXISTS (SELECT FROM pg_inherits WHERE inhparent = c.oid), "
    "has_table_privilege(c.oid, 'SELECT') "
    "FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
    "WHERE n.nspname = %s AND c.relname = %s"
)
#: Without generated columns: whether they are published depends on the server's version.
_COLUMNS = (
    "SELECT attname, atttypid, atttypmod, attnotnull FROM pg_attribute "
    "WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped AND attgenerated = '' ORDER BY attnum"
)
_INDEXES = (
    "SELECT indisprimary, indisreplident, array(SELECT attname::text FROM pg_attribute "
    "WHERE attrelid = indrelid AND attnum = ANY(indkey[0:indnkeyatts - 1])) "
    "FROM pg_index WHERE indrelid = %s AND indisunique AND indimmediate AND indisvalid "
    "AND indpred IS NULL AND indexprs IS NULL"
)
_TYPES = (
    "SELECT t.oid, n.nspname, t.typname, t.typtype, t.typbasetype, "
    "CASE WHEN t.typsubscript = 'array_subscript_handler'::regproc AND t.typlen = -1 "
    "THEN t.typelem ELSE 0 END, format_type(t.oid, NULL) "
    "FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace WHERE t.oid = ANY(%s::oid[])"
)


@dataclass(frozen=True, slots=True)
class TableSpec:
    """The table, key and columns that a source's owner has chosen."""

    schema: str
    table: str
    #: None: the primary key.
    key: tuple[str, ...] | None
    #: None: all of them.
    columns: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class SourceTable:
    """A table that can be a source."""

    oid: int
    shape: DocumentShape
    #: All columns that changes contain, in order: name, type and its modifier.
    columns: tuple[tuple[str, int, int], ...]
    #: The SQL names of the key's types.
    key_types: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Index:
    is_primary: bool
    is_identity: bool
    columns: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Attribute:
    name: str
    type_oid: int
    type_modifier: int
    not_null: bool


async def read_table(connection: AsyncConnection, spec: TableSpec) -> SourceTable:
    """Return the table, or raise `SourceUnsuitable` with the reason."""
    try:
        async with asyncio.timeout(LOOK_TIMEOUT_S):
            return await _read_table(connection, spec)
    except (TypeError, ValueError, LookupError, ArithmeticError, RecursionError) as strange:
        # The server may return any number of columns, of any types.
        logger.info("PostgreSQL has no such catalogue", exc_info=strange)
        raise SourceUnsuitable(
            "protocol_violation", "The catalogue is not PostgreSQL's.", "/connection"
        ) from strange


async def _read_table(connection: AsyncConnection, spec: TableSpec) -> SourceTable:
    await _check_server(connection)
    rows = await (await connection.execute(_TABLE, (spec.schema, spec.table))).fetchall()
    if not rows:
        raise SourceUnsuitable(
            "no_such_table", f"The table {spec.schema}.{spec.table} does not exist."
        )
    oid, kind, persistence, identity, has_children, readable = rows[0]
    if kind not in ("r", "p") or persistence != "p" or has_children:
        raise SourceUnsuitable(
            "not_a_table",
            "The table must be an ordinary or partitioned table. The log does not contain the "
            "changes of views, foreign tables, unlogged tables, and tables that others inherit "
            "from.",
        )
    if not readable:
        raise SourceUnsuitable(
            "forbidden", "The user is not allowed to read the table.", "/connection"
        )
    attribute_rows = await (await connection.execute(_COLUMNS, (oid,))).fetchall()
    attributes = [_Attribute(*row) for row in attribute_rows]
    indexes = [
        _Index(primary, replica, frozenset(columns))
        for primary, replica, columns in await (
            await connection.execute(_INDEXES, (oid,))
        ).fetchall()
    ]
    types, names = await _types(connection, {attribute.type_oid for attribute in attributes})
    key = _key(spec, attributes, indexes)
    _check_identity(identity, key, indexes)
    shape = _shape(spec, key, attributes, types, names)
    by_name = {attribute.name: names[attribute.type_oid] for attribute in attributes}
    return SourceTable(
        oid,
        shape,
        tuple(
            (attribute.name, attribute.type_oid, attribute.type_modifier)
            for attribute in attributes
        ),
        tuple(by_name[name] for name in key),
    )


async def _check_server(connection: AsyncConnection) -> None:
    row = await (await connection.execute(_SERVER)).fetchone()
    if row is None:
        raise SourceUnsuitable(
            "server_too_old", "The server did not report its settings.", "/connection"
        )
    version, level, is_standby = row
    if version < MIN_VERSION:
        raise SourceUnsuitable(
            "server_too_old", "PostgreSQL 14 or newer is required.", "/connection"
        )
    if is_standby:
        raise SourceUnsuitable(
            "standby", "The server is a standby; use the primary.", "/connection"
        )
    if level != "logical":
        detail = f"The server's wal_level is {level}; set it to `logical` and restart the server."
        raise SourceUnsuitable("wal_level", detail, "/connection")


async def _types(connection: AsyncConnection, oids: set[int]) -> tuple[Types, dict[int, str]]:
    """Return types, including base and element types, and their names in SQL."""
    types: dict[int, TypeFacts] = {}
    names: dict[int, str] = {}
    for _ in range(MAX_TYPE_ROUNDS):
        missing = sorted(oids - set(types))
        if not missing:
            break
        rows = await (await connection.execute(_TYPES, (missing,))).fetchall()
        for oid, schema, name, kind, base, element, _shown in rows:
            types[oid] = TypeFacts(oid, name, kind, base, element)
            names[oid] = sql.Identifier(schema, name).as_string(connection)
        oids = {part for t in types.values() for part in (t.base, t.element) if part}
    return types, names


def _key(
    spec: TableSpec, attributes: Sequence[_Attribute], indexes: Sequence[_Index]
) -> tuple[str, ...]:
    if spec.key is None:
        primary = next((index for index in indexes if index.is_primary), None)
        if primary is None:
            raise SourceUnsuitable(
                "no_key",
                "The table has no primary key. Name the columns of a unique index that cannot be "
                "NULL.",
                "/key",
            )
        return tuple(
            attribute.name for attribute in attributes if attribute.name in primary.columns
        )
    if all(index.columns != frozenset(spec.key) for index in indexes):
        raise SourceUnsuitable(
            "no_key",
            "No suitable unique index has these columns. Partial and deferrable indexes "
            "cannot be used.",
            "/key",
        )
    nullable = [
        attribute.name
        for attribute in attributes
        if attribute.name in spec.key and not attribute.not_null
    ]
    if nullable:
        raise SourceUnsuitable("no_key", f"The column {nullable[0]} may be NULL.", "/key")
    return spec.key


def _check_identity(identity: str, key: Sequence[str], indexes: Sequence[_Index]) -> None:
    """Check that changes identify their row."""
    if identity == "f":
        return
    index = next((i for i in indexes if (i.is_primary if identity == "d" else i.is_identity)), None)
    if identity == "n" or index is None or not set(key) <= index.columns:
        raise SourceUnsuitable(
            "replica_identity",
            "The table's replica identity does not include the key of "
            "rows that change: ALTER TABLE … REPLICA IDENTITY USING INDEX …, or FULL.",
            "/key",
        )


def _shape(
    spec: TableSpec,
    key: tuple[str, ...],
    attributes: Sequence[_Attribute],
    types: Types,
    names: dict[int, str],
) -> DocumentShape:
    known_names = {attribute.name for attribute in attributes}
    chosen = known_names if spec.columns is None else {*spec.columns, *key}
    missing = sorted(chosen - known_names)
    if missing:
        raise SourceUnsuitable(
            "no_such_column", f"The column {missing[0]} does not exist.", "/columns"
        )
    columns = []
    for attribute in attributes:
        if attribute.name not in chosen:
            continue
        write = mapper(attribute.type_oid, types)
        if write is None:
            raise SourceUnsuitable(
                "unsupported_type",
                f"The column {attribute.name} has the type {names[attribute.type_oid]}, which "
                "documents cannot contain; list the columns to copy in `columns`.",
                "/columns",
            )
        columns.append(
            SourceColumn(attribute.name, attribute.type_oid, attribute.type_modifier, write)
        )
    _check_key_columns(key, columns, types, names)
    return DocumentShape(tuple(columns), key)


def _check_key_columns(
    key: Sequence[str], columns: Sequence[SourceColumn], types: Types, names: dict[int, str]
) -> None:
    for column in columns:
        if column.name in key and not may_be_key(column.type_oid, types):
            raise SourceUnsuitable(
                "unsupported_key",
                f"The column {column.name} has the type {names[column.type_oid]}, which cannot "
                "be a document's `_id`.",
                "/key",
            )
        if column.name == ID and tuple(key) != (ID,):
            raise SourceUnsuitable(
                "reserved_name", "A column named _id must be the key.", "/columns"
            )
