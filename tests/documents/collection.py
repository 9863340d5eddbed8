"""A collection for tests, and callers of its data plane."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import requests

from documents.backend import Backend
from documents.collections.actions import lock_by_name
from documents.collections.node_upkeep import install_after_commit
from documents.models import Collection, Index
from foundation.scope import scoped
from tenants.models import ApiKey
from tests.caller import Caller, with_key
from tests.make import TenantAccount, make_key, make_tenant, unique

FIELD = tuple[str, int]
#: Where tests store the documents of their collections, unless they say otherwise.
default_backend: ContextVar[str] = ContextVar("default_backend", default=Backend.POSTGRES)


@dataclass
class CollectionClient:
    """A collection, and its data plane as the tenant's secret key sees it."""

    account: TenantAccount
    collection: Collection
    caller: Caller

    @property
    def name(self) -> str:
        return self.collection.name

    @property
    def path(self) -> str:
        return f"/v1/collections/{self.name}"

    def insert(self, document: object) -> dict[str, Any]:
        answer = self.caller.post(f"{self.path}/documents", document)
        assert answer.status_code == 201, answer.text
        body: dict[str, Any] = answer.json()
        return body

    def insert_many(self, documents: Sequence[object]) -> None:
        operations = [{"insert": document} for document in documents]
        answer = self.caller.post(f"{self.path}/documents:bulk", {"operations": operations})
        assert answer.status_code == 200, answer.text

    def query(self, filter: object = None, **more: object) -> list[Any]:  # noqa: A002
        answer = self.ask({"filter": filter or {}, **more})
        assert answer.status_code == 200, answer.text
        return [item["document"] for item in answer.json()["items"]]

    def ask(self, body: object) -> requests.Response:
        return self.caller.post(f"{self.path}/query", body)

    def versions(self) -> dict[Any, int]:
        """Return each document's version, by its id."""
        items = self.ask({}).json()["items"]
        return {item["id"]: item["version"] for item in items}

    def ids(self, filter: object = None, **more: object) -> list[Any]:  # noqa: A002
        return [document["_id"] for document in self.query(filter, **more)]

    def change(self, **values: str) -> None:
        """Change the collection's definition, as a call of the management API does."""
        with scoped(tenant_id=self.account.tenant.id):
            collection = lock_by_name(self.name)
            for name, value in values.items():
                setattr(collection, name, value)
            collection.write_version += 1
            collection.save()
            install_after_commit(collection)

    def anonymous(self) -> Caller:
        """Return a caller with a publishable key and no token."""
        key = make_key(
            self.account.tenant,
            kind=ApiKey.Kind.PUBLISHABLE,
            scopes=["documents:read", "documents:write"],
        )
        return Caller(self.caller.base, {"Rillbase-Key": key})


def make_collection(
    base: str,
    *,
    account: TenantAccount | None = None,
    name: str = "",
    schema: object = None,
    rules: object = None,
    indexes: Sequence[tuple[str, Sequence[FIELD], bool]] = (),
    backend: str = "",
) -> CollectionClient:
    """Make a collection whose indexes are ready, with a tenant of its own unless one is given."""
    account = account or make_tenant(plan="dedicated")
    with scoped(tenant_id=account.tenant.id):
        collection = Collection.objects.create(
            name=name or unique("things"),
            schema=None if schema is None else json.dumps(schema),
            access_rules=json.dumps(rules or {}),
            backend=backend or default_backend.get(),
        )
        for index_name, fields, is_unique in indexes:
            Index.objects.create(
                collection=collection,
                name=index_name,
                fields=[list(field) for field in fields],
                unique=is_unique,
                state=Index.State.READY,
            )
    key = make_key(account.tenant, scopes=["documents:read", "documents:write"])
    return CollectionClient(account, collection, with_key(base, key))
