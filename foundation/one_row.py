"""Reading one row of the tenant in scope by its id, without building its query again.

The SQL for a row by its id never changes, but a query set builds and compiles it each time, which
takes more CPU time than the rest of a read. So each model's statement is compiled once, from the
query set of its scoped manager, and run with new values. Both walls stand (`foundation.scope`): the
statement names the tenant in scope, and PostgreSQL's policies see the same transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, TypeVar
from uuid import UUID

from django.db import connections

from foundation.scope import ScopeError, TenantOwned, current_tenant_id

M = TypeVar("M", bound=TenantOwned)

ALIAS = "default"


@dataclass(frozen=True, slots=True)
class _Statement(Generic[M]):
    """SQL whose parameters are a tenant's id and a row's, and how its columns become a model."""

    sql: str
    build_row: Callable[[Sequence[Any]], M]


def read_one(model: type[M], pk: UUID) -> M | None:
    """Return the row of the tenant in scope that has this id, if there is one."""
    statement = _statement(model)
    with connections[ALIAS].cursor() as cursor:
        cursor.execute(statement.sql, (current_tenant_id(), pk))
        row = cursor.fetchone()
    return None if row is None else statement.build_row(row)


@cache
def _statement(model: type[M]) -> _Statement[M]:
    """Compile the statement of a model. Needs a tenant in scope, like all access to its rows."""
    pk = UUID(int=0)
    compiler = model.objects.filter(pk=pk).order_by().query.get_compiler(ALIAS)
    sql, parameters = compiler.as_sql()
    if parameters != (current_tenant_id(), pk):
        raise ScopeError(f"rows of {model.__name__} are not identified by tenant and id alone")
    converters = compiler.get_converters([column for column, _, _ in compiler.select])
    names = [field.attname for field in model._meta.concrete_fields]

    def build_row(row: Sequence[Any]) -> M:
        values, connection = list(row), connections[ALIAS]
        for position, (converts, column) in converters.items():
            for convert in converts:
                values[position] = convert(values[position], column, connection)
        return model.from_db(ALIAS, names, values)

    return _Statement(sql, build_row)
