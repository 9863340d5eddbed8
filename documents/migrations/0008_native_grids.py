"""The backend whose writes a grid epoch receives."""

from __future__ import annotations

from django.db import migrations

_ADD = """
ALTER TABLE documents_gridepoch
    ADD COLUMN backend text NOT NULL DEFAULT 'postgres' CHECK (backend IN ('postgres', 'native')),
    ADD CONSTRAINT documents_gridepoch_shared CHECK (backend = 'postgres' OR tenant_id IS NULL);
"""

_DROP = """
DELETE FROM documents_gridepoch WHERE backend = 'native';
ALTER TABLE documents_gridepoch DROP COLUMN backend;
"""


class Migration(migrations.Migration):
    dependencies = [("documents", "0007_source")]

    operations = [migrations.RunSQL(_ADD, _DROP)]
