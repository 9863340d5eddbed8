"""Privileges on datasets, their number per plan, and the Iceberg catalogue.

The two catalogue tables have the layout that Iceberg clients of any language expect of a SQL
catalogue; only the pipeline writes to them here.
"""

from __future__ import annotations

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from foundation.rls import OWN_TENANT, Grant, Protect

LIMITS = {
    "free": {"datasets": 5, "dataset_bytes": 1_000_000_000},
    "standard": {"datasets": 50, "dataset_bytes": 100_000_000_000},
    "dedicated": {"datasets": 500, "dataset_bytes": 10_000_000_000_000},
}
OWN = "SELECT, INSERT, UPDATE, DELETE"
CATALOGUE = """
CREATE TABLE iceberg_tables (
    catalog_name varchar(255) NOT NULL,
    table_namespace varchar(255) NOT NULL,
    table_name varchar(255) NOT NULL,
    metadata_location varchar(1000),
    previous_metadata_location varchar(1000),
    iceberg_type varchar(5),
    PRIMARY KEY (catalog_name, table_namespace, table_name)
);
CREATE TABLE iceberg_namespace_properties (
    catalog_name varchar(255) NOT NULL,
    namespace varchar(255) NOT NULL,
    property_key varchar(255) NOT NULL,
    property_value varchar(1000),
    PRIMARY KEY (catalog_name, namespace, property_key)
)
"""
NO_CATALOGUE = "DROP TABLE iceberg_tables; DROP TABLE iceberg_namespace_properties"


def add_limits(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    plans = apps.get_model("tenants", "Plan").objects.using(schema_editor.connection.alias)
    for plan in plans.filter(name__in=LIMITS):
        for name, limit in LIMITS[plan.name].items():
            plan.limits.setdefault(name, limit)
        plan.save()


def keep_limits(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Keep the limits: an unused limit is harmless."""


class Migration(migrations.Migration):
    dependencies = [
        ("analytics", "0001_initial"),
        ("foundation", "0002_protect"),
        ("tenants", "0007_live_limits"),
    ]

    operations = [
        *(
            Protect(
                f"analytics_{name}",
                app=Grant(OWN, OWN_TENANT),
                relay=Grant(OWN),
                staff=Grant("SELECT"),
            )
            for name in ("dataset", "upload", "run", "storedfile")
        ),
        migrations.RunSQL(CATALOGUE, NO_CATALOGUE),
        Protect("iceberg_tables", relay=Grant(OWN)),
        Protect("iceberg_namespace_properties", relay=Grant(OWN)),
        migrations.RunPython(add_limits, keep_limits),
    ]
