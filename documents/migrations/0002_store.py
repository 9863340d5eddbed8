"""The tables of documents, index entries and the outbox, which are accessed only with SQL.

There are no foreign keys: a check for each document costs more than the insert. The collection's
lock (`documents.store.locks`) and the cleaners ensure integrity instead.
"""

from __future__ import annotations

from django.db import migrations

from foundation.rls import OWN_TENANT, Grant, Protect

#: The outbox is a ring of this many slots, each a partition with the rows of some minutes. A slot
#: whose rows have all been published is emptied with TRUNCATE by the relay's role.
OUTBOX_SLOTS = 8

_DOCUMENT = """
CREATE TABLE documents_document (
    tenant_id uuid NOT NULL,
    collection_id uuid NOT NULL,
    -- The _id in order-preserving bytes.
    key bytea NOT NULL,
    version bigint NOT NULL,
    -- BSON; null: a tombstone.
    body bytea,
    -- Decides the write partition.
    key_hash integer NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (collection_id, key)
);
-- Tombstones in the order in which they are purged.
CREATE INDEX documents_tombstone ON documents_document (updated_at) WHERE body IS NULL;
"""

_INDEX_ENTRY = """
CREATE TABLE documents_indexentry (
    tenant_id uuid NOT NULL,
    index_number bigint NOT NULL,
    -- The indexed values in order-preserving bytes.
    key bytea NOT NULL,
    document_key bytea NOT NULL,
    -- Whether the entry takes part in sorting; all take part in finding.
    ordering boolean NOT NULL,
    -- Whether no other document may have an entry with this key.
    enforced boolean NOT NULL,
    PRIMARY KEY (index_number, key, document_key)
);
CREATE INDEX documents_indexentry_document ON documents_indexentry (index_number, document_key);
CREATE UNIQUE INDEX documents_indexentry_unique ON documents_indexentry (index_number, key)
    WHERE enforced;
"""

_OUTBOX = """
CREATE TABLE documents_outbox (
    slot smallint NOT NULL
        DEFAULT ((extract(epoch FROM clock_timestamp())::bigint / 60) % {slots})::smallint,
    id bigint GENERATED ALWAYS AS IDENTITY,
    tenant_id uuid NOT NULL,
    collection_id uuid NOT NULL,
    key bytea NOT NULL,
    key_hash integer NOT NULL,
    version bigint NOT NULL,
    -- BSON of the _id alone, for deletes; null: the document itself has it.
    deleted_id bytea,
    xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    rules_version bigint NOT NULL,
    -- Hashes of all keys that an atomic batch wrote; null: no such batch, or one too large to mark.
    batch_hashes integer[],
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
) PARTITION BY LIST (slot);
-- Transactions whose rows have been published, with the time of it.
CREATE TABLE documents_outboxmark (
    slot smallint NOT NULL,
    xid xid8 NOT NULL,
    marked_at timestamptz NOT NULL DEFAULT clock_timestamp()
) PARTITION BY LIST (slot);
"""

_SLOT = """
CREATE TABLE documents_outbox_{slot} PARTITION OF documents_outbox FOR VALUES IN ({slot});
CREATE TABLE documents_outboxmark_{slot} PARTITION OF documents_outboxmark FOR VALUES IN ({slot});
"""

_OUTBOX_INDEXES = """
CREATE INDEX documents_outbox_xid ON documents_outbox (xid);
CREATE INDEX documents_outboxmark_xid ON documents_outboxmark (xid);
"""


def _outbox() -> list[str]:
    slots = [_SLOT.format(slot=slot) for slot in range(OUTBOX_SLOTS)]
    return [_OUTBOX.format(slots=OUTBOX_SLOTS), *slots, _OUTBOX_INDEXES]


def _protect_slots() -> list[Protect]:
    """Rows are accessed through the parents; partitions are only truncated directly."""
    tables = ("documents_outbox", "documents_outboxmark")
    return [
        Protect(f"{table}_{slot}", relay=Grant("SELECT, TRUNCATE"))
        for table in tables
        for slot in range(OUTBOX_SLOTS)
    ]


class Migration(migrations.Migration):
    dependencies = [("documents", "0001_initial"), ("foundation", "0002_protect")]

    operations = [
        migrations.RunSQL(_DOCUMENT, "DROP TABLE documents_document"),
        migrations.RunSQL(_INDEX_ENTRY, "DROP TABLE documents_indexentry"),
        migrations.RunSQL(
            "".join(_outbox()), "DROP TABLE documents_outbox; DROP TABLE documents_outboxmark"
        ),
        Protect(
            "documents_collection",
            app=Grant("SELECT, INSERT, UPDATE", OWN_TENANT),
            relay=Grant("SELECT, UPDATE, DELETE"),
            staff=Grant("SELECT"),
        ),
        Protect(
            "documents_index",
            app=Grant("SELECT, INSERT, UPDATE", OWN_TENANT),
            relay=Grant("SELECT, UPDATE, DELETE"),
            staff=Grant("SELECT"),
        ),
        Protect(
            "documents_importjob",
            app=Grant("SELECT, INSERT, UPDATE", OWN_TENANT),
            relay=Grant("SELECT, UPDATE, DELETE"),
            staff=Grant("SELECT"),
        ),
        Protect(
            "documents_document",
            app=Grant("SELECT, INSERT, UPDATE", OWN_TENANT),
            relay=Grant("SELECT, DELETE"),
        ),
        Protect(
            "documents_indexentry",
            app=Grant("SELECT, INSERT, DELETE", OWN_TENANT),
            relay=Grant("SELECT, DELETE"),
        ),
        Protect(
            "documents_outbox",
            app=Grant("INSERT", OWN_TENANT),
            relay=Grant("SELECT, DELETE"),
        ),
        Protect(
            "documents_outboxmark",
            relay=Grant("SELECT, INSERT"),
        ),
        *_protect_slots(),
    ]
