"""Determines whose data the running code may access, with two walls between tenants.

The first wall is code: models that belong to a tenant are read through a manager that filters by
the tenant in scope and raises when there is none. The second is PostgreSQL: `scoped` opens a
transaction and sets `rillbase.tenant` and `rillbase.user` for that transaction only, and the
row-level security policies compare with them. A session-level setting would leak through a
connection pool; a transaction-local one cannot, and outside a transaction the policies see
nothing at all.

The scope travels in a ContextVar, so it follows `await` and `sync_to_async` only: another task or
thread starts without one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import ClassVar, Self, TypeVar
from uuid import UUID

import psycopg
from django.db import InterfaceError, OperationalError, connections, models, transaction
from psycopg.pq import ExecStatus, TransactionStatus

M = TypeVar("M", bound=models.Model)

#: Connections whose roles see several tenants, each for one purpose only.
CROSS_TENANT_ALIASES = frozenset({"auth", "relay", "staff", "owner"})

_SET_SCOPE = (
    "SELECT set_config('rillbase.tenant', '{}', true), set_config('rillbase.user', '{}', true)"
)


class ScopeError(RuntimeError):
    """Code tried to leave its tenant's scope. Always a bug, never caused by user input."""


class NoTenantInScope(ScopeError):
    """Tenant-owned data was requested while no tenant is in scope."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Tenant and user on whose behalf code runs; either may be absent."""

    tenant_id: UUID | None
    user_id: UUID | None


_current: ContextVar[Scope | None] = ContextVar("rillbase_scope", default=None)


@contextmanager
def scoped(
    *, tenant_id: UUID | None = None, user_id: UUID | None = None, using: str = "default"
) -> Iterator[Scope]:
    """Run a block as one transaction in the name of a tenant, a user, or both.

    Inside another scope the block becomes a savepoint. It may add a tenant to a scope that has
    none, but never switch from one tenant to another.
    """
    outer = _current.get()
    if outer is not None and outer.tenant_id not in (None, tenant_id):
        raise ScopeError(f"already in the scope of tenant {outer.tenant_id}, not {tenant_id}")
    scope = Scope(tenant_id, user_id or (outer.user_id if outer else None))
    with _begin(scope, using):
        token = _current.set(scope)
        try:
            yield scope
        finally:
            _current.reset(token)
        if outer is not None and outer != scope:
            _announce(outer, using)


def _begin(scope: Scope, using: str) -> ExitStack:
    """Open a transaction whose first statement names the scope.

    A pooled connection may have died while it was idle. The first statement detects that before
    anything has happened, so an outermost transaction is retried once, after the pool has dropped
    dead connections. Checking each connection beforehand would cost every request a round trip.
    """
    connection = connections[using]
    if connection.in_atomic_block:
        return _begin_once(scope, using)
    try:
        return _begin_once(scope, using)
    except (OperationalError, InterfaceError):
        connection.close()
        pool = getattr(connection, "pool", None)
        if pool is not None:
            pool.check()
        return _begin_once(scope, using)


def _begin_once(scope: Scope, using: str) -> ExitStack:
    with ExitStack() as stack:
        stack.enter_context(transaction.atomic(using=using))
        _announce(scope, using)
        return stack.pop_all()


def _announce(scope: Scope, using: str) -> None:
    """Set the scope for PostgreSQL's policies, until the end of this transaction.

    This runs once a request, so it goes to the driver directly, and BEGIN travels with the first
    statement: one round trip instead of two. Both values are UUIDs, so the text is safe.
    """
    connection = connections[using]
    wire = connection.connection.pgconn
    begin = "BEGIN; " if wire.transaction_status == TransactionStatus.IDLE else ""
    statement = _SET_SCOPE.format(scope.tenant_id or "", scope.user_id or "")
    with connection.wrap_database_errors:
        result = wire.exec_((begin + statement).encode())
        if result.status != ExecStatus.TUPLES_OK:
            raise psycopg.OperationalError(result.get_error_message())


def current_tenant_id() -> UUID:
    """Return the tenant in scope, or raise `NoTenantInScope`."""
    scope = _current.get()
    if scope is None or scope.tenant_id is None:
        raise NoTenantInScope("no tenant is in scope; wrap the code in foundation.scope.scoped()")
    return scope.tenant_id


class ScopedManager(models.Manager[M]):
    """Reads and creates rows of the tenant in scope only; raises when there is none."""

    def get_queryset(self) -> models.QuerySet[M]:
        return super().get_queryset().filter(tenant_id=current_tenant_id())

    def create(self, **values: object) -> M:
        tenant_id = current_tenant_id()
        owner_id = values.setdefault("tenant_id", tenant_id)
        if owner_id != tenant_id or "tenant" in values:
            raise ScopeError("rows can be created only for the tenant in scope")
        return super().create(**values)


class UnscopedManager(models.Manager[M]):
    """Reads rows of all tenants, over a connection whose role is meant for that.

    `Model.unscoped.using("relay")` is the only access: the default connection is rejected.
    """

    def get_queryset(self) -> models.QuerySet[M]:
        if self._db not in CROSS_TENANT_ALIASES:
            raise ScopeError(
                f"reading {self.model.__name__} across tenants requires .using() with one of "
                + ", ".join(sorted(CROSS_TENANT_ALIASES))
            )
        return super().get_queryset()

    def using(self, alias: str | None) -> models.QuerySet[M]:
        return self.db_manager(alias).get_queryset()


class TenantOwned(models.Model):
    """Base of every model whose rows belong to one tenant.

    The concrete model declares `tenant` or `tenant_id`, and its migration calls `Protect`.
    """

    objects: ClassVar[ScopedManager[Self]] = ScopedManager()
    unscoped: ClassVar[UnscopedManager[Self]] = UnscopedManager()

    class Meta:
        abstract = True
