"""Checks of indexes find entries that are missing, and those that no document has."""

from __future__ import annotations

from io import StringIO
from random import Random

import pytest
from django.core.management import CommandError, call_command
from django.db import connections

from documents.backend import Backend
from documents.collections import index_check
from documents.collections.index_check import IndexFault, IndexReport, check_indexes
from documents.models import Collection, Index
from foundation.scope import scoped
from tests.caller import Caller
from tests.documents.collections import stored_documents
from tests.make import TenantAccount

INDEXES = [
    {"name": "by-code", "fields": [["code", 1]], "unique": True},
    {"name": "by-shop", "fields": [["shop", 1], ["price", -1]]},
    {"name": "by-tag", "fields": [["tags", 1]]},
]
DOCUMENTS = 120
#: Of a document: one of its code, one of its shop, four of an array with two tags.
ENTRIES = DOCUMENTS * 6


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_check, "PART_DOCUMENTS", 50)
    monkeypatch.setattr(index_check, "PART_ENTRIES", 70)


def filled(caller: Caller, account: TenantAccount, backend: str) -> Collection:
    path = f"/api/v1/tenants/{account.slug}/collections"
    body = {"name": "things", "backend": backend, "indexes": INDEXES}
    assert caller.post(path, body).status_code == 201
    random = Random(1)
    documents = (
        {"_id": f"d{n:03}", "code": n, "shop": random.randrange(5), "tags": [n % 3, 7]}
        for n in range(DOCUMENTS)
    )
    stored_documents.put(account.tenant.id, "things", documents)
    return Collection.unscoped.using("relay").get(tenant=account.tenant, name="things")


def execute(account: TenantAccount, statement: str, *parameters: str | int | bytes) -> None:
    with scoped(tenant_id=account.tenant.pk), connections["default"].cursor() as cursor:
        cursor.execute(statement, parameters)


def number_of(collection: Collection, name: str) -> int:
    return Index.unscoped.using("relay").get(collection=collection, name=name).number


@pytest.mark.parametrize("backend", list(Backend))
def test_nothing_is_wrong_with_an_index_that_was_written(
    caller: Caller, account: TenantAccount, backend: Backend
) -> None:
    collection = filled(caller, account, backend)
    assert check_indexes(collection) == IndexReport(DOCUMENTS, ENTRIES, [])


def test_a_missing_entry_is_reported(caller: Caller, account: TenantAccount) -> None:
    collection = filled(caller, account, "postgres")
    execute(
        account,
        "DELETE FROM documents_indexentry WHERE (index_number, key, document_key) IN ("
        "SELECT index_number, key, document_key FROM documents_indexentry "
        "WHERE index_number = %s ORDER BY key LIMIT 1)",
        number_of(collection, "by-code"),
    )
    report = check_indexes(collection)
    assert report.faults == [IndexFault("by-code", "d000")]
    assert report.entries == ENTRIES - 1


def test_an_entry_of_no_document_is_reported(caller: Caller, account: TenantAccount) -> None:
    collection = filled(caller, account, "postgres")
    execute(
        account,
        "INSERT INTO documents_indexentry "
        "(tenant_id, index_number, key, document_key, ordering, enforced) "
        "VALUES (%s, %s, %s, %s, true, false)",
        str(account.tenant.pk),
        number_of(collection, "by-shop"),
        b"\xfe",
        b"\xfe",
    )
    assert check_indexes(collection).faults == [IndexFault("by-shop", "fe")]


def test_the_command_names_what_is_wrong(caller: Caller, account: TenantAccount) -> None:
    collection = filled(caller, account, "postgres")
    options = {"tenant": account.slug, "collection": "things"}
    output = StringIO()
    call_command("check_indexes", stdout=output, **options)
    line = f"{account.slug}/things: {DOCUMENTS} documents, {ENTRIES} entries, 0 wrong"
    assert output.getvalue().strip() == line
    execute(
        account,
        "DELETE FROM documents_indexentry WHERE index_number = %s AND ordering",
        number_of(collection, "by-tag"),
    )
    output = StringIO()
    with pytest.raises(CommandError):
        call_command("check_indexes", stdout=output, **options)
    assert f"{DOCUMENTS} wrong" in output.getvalue()
    assert "  index by-tag: document d007" in output.getvalue()
