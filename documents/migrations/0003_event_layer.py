"""The event layer: its epochs, and the relay's lease with its fencing token."""

from __future__ import annotations

from django.db import migrations

from foundation.rls import Grant, Protect

_TABLES = """
-- The sizes of the matching grid that are served at present; a resize adds one, then retires the old.
CREATE TABLE documents_gridepoch (
    number integer PRIMARY KEY CHECK (number BETWEEN 1 AND 1000000),
    write_partitions integer NOT NULL CHECK (write_partitions BETWEEN 1 AND 1024),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    retired_at timestamptz
);
INSERT INTO documents_gridepoch (number, write_partitions) VALUES (1, 2);

-- Raised after a backup was restored: what streams and clients know of the time before is void.
CREATE TABLE documents_installation (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    epoch integer NOT NULL CHECK (epoch > 0),
    raised_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
INSERT INTO documents_installation (epoch) VALUES (1);

-- Who relays, as the token of the holder. A new holder draws a new token.
CREATE TABLE documents_relaylease (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    token bigint NOT NULL,
    expires_at timestamptz NOT NULL
);
INSERT INTO documents_relaylease (token, expires_at) VALUES (0, '-infinity');

-- Names the time between two crashes of PostgreSQL: a crash empties this table, and so does a
-- failover. Transaction ids that no record reached the disk with may be given out again after one.
CREATE UNLOGGED TABLE documents_databaselife (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    name uuid NOT NULL DEFAULT gen_random_uuid()
);

CREATE SEQUENCE documents_fencingtoken AS bigint;
GRANT USAGE ON SEQUENCE documents_fencingtoken TO rb_relay;
"""

_DROP = """
DROP SEQUENCE documents_fencingtoken;
DROP TABLE documents_databaselife;
DROP TABLE documents_relaylease;
DROP TABLE documents_installation;
DROP TABLE documents_gridepoch;
"""


class Migration(migrations.Migration):
    dependencies = [("documents", "0002_store"), ("foundation", "0002_protect")]

    operations = [
        migrations.RunSQL(_TABLES, _DROP),
        Protect("documents_gridepoch", relay=Grant("SELECT, INSERT, UPDATE")),
        Protect("documents_installation", relay=Grant("SELECT, UPDATE")),
        Protect("documents_relaylease", relay=Grant("SELECT, UPDATE")),
        Protect("documents_databaselife", relay=Grant("SELECT, INSERT")),
    ]
