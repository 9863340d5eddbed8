"""Dedicated grid epochs, whose streams receive only the writes of one tenant."""

from __future__ import annotations

from django.db import migrations

_COLUMNS = """
ALTER TABLE documents_gridepoch
    -- Null: all tenants share it.
    ADD COLUMN tenant_id uuid,
    -- When all nodes of a tenant's grid watched for the first time: queries go there from then on.
    ADD COLUMN ready_at timestamptz;
-- Of a tenant's grids in force no two are alike: two who want one of a size find the same.
CREATE UNIQUE INDEX documents_gridepoch_own ON documents_gridepoch (tenant_id, write_partitions)
    WHERE retired_at IS NULL;
-- Numbers below are the installation's own. None is given twice, also after a tenant has gone.
CREATE SEQUENCE documents_tenantgrid AS integer START 1001 MAXVALUE 1000000;
GRANT USAGE ON SEQUENCE documents_tenantgrid TO rb_relay;
"""

_DROP = """
DROP SEQUENCE documents_tenantgrid;
DELETE FROM documents_gridepoch WHERE tenant_id IS NOT NULL;
ALTER TABLE documents_gridepoch DROP COLUMN tenant_id, DROP COLUMN ready_at;
"""


class Migration(migrations.Migration):
    dependencies = [("documents", "0004_quota")]

    operations = [migrations.RunSQL(_COLUMNS, _DROP)]
