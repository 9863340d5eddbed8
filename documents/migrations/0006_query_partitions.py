"""The two dimensions of grid epochs: write partitions and query partitions."""

from __future__ import annotations

from django.db import migrations

_ADD = """
ALTER TABLE documents_gridepoch
    ADD COLUMN query_partitions smallint NOT NULL DEFAULT 1 CHECK (query_partitions BETWEEN 1 AND 64);
DROP INDEX documents_gridepoch_own;
CREATE UNIQUE INDEX documents_gridepoch_own
    ON documents_gridepoch (tenant_id, query_partitions, write_partitions)
    WHERE retired_at IS NULL;
"""

_DROP = """
DELETE FROM documents_gridepoch WHERE query_partitions > 1;
ALTER TABLE documents_gridepoch DROP COLUMN query_partitions;
CREATE UNIQUE INDEX documents_gridepoch_own ON documents_gridepoch (tenant_id, write_partitions)
    WHERE retired_at IS NULL;
"""


class Migration(migrations.Migration):
    dependencies = [("documents", "0005_tenants_grids")]

    operations = [migrations.RunSQL(_ADD, _DROP)]
