"""Which entries of streams count as evidence of a document."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from documents.backend import Backend
from documents.outbox.entries import Image, StreamEntryKind, encode_image
from documents.store.facts import CollectionFacts
from realtime.delivery_trace.evidence import TracedDocument
from rillbase_native import Definition, Value, id_key

KEY = id_key(Value.parse(b'"a"'))
TENANT, COLLECTION = uuid4(), uuid4()
IMAGE = Image(
    kind=StreamEntryKind.PUT,
    xid=7,
    tenant_id=TENANT,
    collection_id=COLLECTION,
    version=3,
    rules_version=1,
    created_ms=1,
    written_us=2,
    key=KEY,
    body=Value.parse(b'{"_id":"a"}').bson(),
)


@pytest.fixture
def named() -> TracedDocument:
    facts = CollectionFacts(
        id=COLLECTION,
        raw=COLLECTION.bytes,
        tenant_id=TENANT,
        name="todos",
        write_version=1,
        rules_version=1,
        version_floor=0,
        definition=Definition(None, []),
        rules={},
        indexes=(),
        source_id=None,
        schema=None,
        backend=Backend.POSTGRES,
    )
    return TracedDocument(facts, KEY)


def test_an_entry_of_the_document_is_read(named: TracedDocument) -> None:
    assert named.image(encode_image(IMAGE)) == IMAGE


@pytest.mark.parametrize(
    "other",
    [
        replace(IMAGE, tenant_id=uuid4()),
        replace(IMAGE, collection_id=uuid4()),
        replace(IMAGE, key=KEY + b"b"),
        replace(IMAGE, tenant_id=UUID(int=0), body=KEY),
    ],
    ids=["tenant", "collection", "key", "content"],
)
def test_writes_of_other_tenants_under_the_same_key_are_no_evidence(
    named: TracedDocument, other: Image
) -> None:
    assert named.image(encode_image(other)) is None


def test_entries_without_an_image_are_no_evidence(named: TracedDocument) -> None:
    assert named.image(KEY) is None
    assert named.image(b"\1\4" + KEY) is None
