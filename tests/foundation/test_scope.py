"""The two barriers between tenants, each tested without the other."""

from __future__ import annotations

from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async
from django.db import ProgrammingError, connection

from foundation import scope
from foundation.one_row import read_one
from foundation.scope import NoTenantInScope, ScopeError, current_tenant_id, scoped
from tenants.models import ApiKey, Tenant
from tests.make import make_tenant


def test_reading_tenant_data_without_a_tenant_in_scope_raises() -> None:
    with pytest.raises(NoTenantInScope):
        ApiKey.objects.count()


def test_a_scope_sees_only_its_own_rows() -> None:
    mine, other = make_tenant(), make_tenant()
    with scoped(tenant_id=mine.tenant.id):
        assert {k.tenant_id for k in ApiKey.objects.all()} == {mine.tenant.id}
        assert not ApiKey.objects.filter(tenant_id=other.tenant.id).exists()


def test_a_row_is_found_by_its_id_only_in_its_own_tenant() -> None:
    mine, other = make_tenant(), make_tenant()
    with scoped(tenant_id=other.tenant.id):
        key = ApiKey.objects.get()
        result = read_one(ApiKey, key.id)
        assert result is not None
        assert vars(result).keys() == vars(key).keys()
        for field in ApiKey._meta.concrete_fields:
            assert getattr(result, field.attname) == getattr(key, field.attname), field
    with scoped(tenant_id=mine.tenant.id):
        assert read_one(ApiKey, key.id) is None
    with pytest.raises(NoTenantInScope):
        read_one(ApiKey, key.id)


def test_the_database_hides_a_row_even_from_a_statement_that_names_its_tenant() -> None:
    mine, other = make_tenant(), make_tenant()
    with scoped(tenant_id=other.tenant.id):
        key = ApiKey.objects.get()
    with scoped(tenant_id=mine.tenant.id):
        token = scope._current.set(scope.Scope(other.tenant.id, None))
        try:
            assert read_one(ApiKey, key.id) is None
        finally:
            scope._current.reset(token)


def test_without_the_first_wall_the_database_still_hides_other_tenants() -> None:
    mine, other = make_tenant(), make_tenant()
    with scoped(tenant_id=mine.tenant.id), connection.cursor() as cursor:
        cursor.execute("SELECT DISTINCT tenant_id FROM tenants_apikey")
        assert cursor.fetchall() == [(mine.tenant.id,)]
        cursor.execute(
            "UPDATE tenants_apikey SET name = 'stolen' WHERE tenant_id = %s", (other.tenant.id,)
        )
        assert cursor.rowcount == 0


def test_the_database_refuses_rows_for_another_tenant() -> None:
    mine, other = make_tenant(), make_tenant()
    with (
        pytest.raises(ProgrammingError, match="row-level security"),
        scoped(tenant_id=mine.tenant.id),
    ):
        ApiKey(tenant=other.tenant, kind="secret", name="x", key_id="x", secret_hash=b"").save()


def test_outside_a_transaction_no_rows_are_visible() -> None:
    make_tenant()
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM tenants_apikey")
        assert cursor.fetchone() == (0,)


def test_the_setting_does_not_outlive_the_transaction_on_a_pooled_connection() -> None:
    mine = make_tenant()
    with scoped(tenant_id=mine.tenant.id):
        assert ApiKey.objects.exists()
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('rillbase.tenant', true)")
        assert cursor.fetchone() in [("",), (None,)]


def test_a_scope_never_switches_tenants() -> None:
    with scoped(tenant_id=uuid4()), pytest.raises(ScopeError), scoped(tenant_id=uuid4()):
        pass


def test_a_user_may_enter_a_tenant_and_the_outer_scope_is_restored() -> None:
    mine = make_tenant()
    with scoped(user_id=mine.owner.id):
        with scoped(tenant_id=mine.tenant.id):
            assert ApiKey.objects.exists()
        assert not Tenant.objects.exclude(pk=mine.tenant.id).exists()
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM tenants_apikey")
            assert cursor.fetchone() == (0,)


def test_creating_a_row_for_another_tenant_raises_in_code() -> None:
    mine, other = make_tenant(), make_tenant()
    with scoped(tenant_id=mine.tenant.id), pytest.raises(ScopeError):
        ApiKey.objects.create(tenant_id=other.tenant.id, kind="secret", name="x")


def test_the_unscoped_manager_refuses_the_default_connection() -> None:
    with pytest.raises(ScopeError):
        ApiKey.unscoped.using("default")
    with pytest.raises(ScopeError):
        ApiKey.unscoped.count()


async def test_the_scope_follows_async_code_into_threads() -> None:
    mine = await sync_to_async(make_tenant)()

    def names_in_scope() -> set[str]:
        with scoped(tenant_id=mine.tenant.id):
            return {str(k.tenant_id) for k in ApiKey.objects.all()}

    assert await sync_to_async(names_in_scope)() == {str(mine.tenant.id)}
    with pytest.raises(NoTenantInScope):
        current_tenant_id()


def test_every_table_with_a_tenant_is_behind_forced_row_security() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT c.relname FROM pg_class c
            JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE n.nspname = 'public' AND c.relkind IN ('r', 'p')
              AND NOT (c.relrowsecurity AND c.relforcerowsecurity)
            """
        )
        unprotected = {name for (name,) in cursor.fetchall()}
    staff_only = {
        "django_session",
        "django_admin_log",
        "django_content_type",
        "django_migrations",
        "auth_permission",
        "auth_group",
        "auth_group_permissions",
    }
    assert unprotected == staff_only


def test_the_application_role_owns_nothing_and_cannot_bypass_policies() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT rolsuper, rolbypassrls FROM pg_roles WHERE rolname = current_user")
        assert cursor.fetchone() == (False, False)
        cursor.execute("SELECT count(*) FROM pg_class WHERE relowner = current_user::regrole")
        assert cursor.fetchone() == (0,)
