"""One tenant with a resource for every call of the data plane, and its callers."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import jwt
import requests

from data_plane.calls import Call
from data_plane.http import HttpOperation
from tenants.models import ApiKey, Quota
from tenants.roles import DATA_SCOPES
from tests.aggregates.aggregate_client import make_aggregate
from tests.analytics.dataset_client import make_dataset
from tests.caller import Caller, with_key
from tests.documents.collection import CollectionClient, make_collection
from tests.make import TenantAccount, make_key, make_tenant
from tests.storage_engine.topics.topic_client import make_topic

ISSUER, AUDIENCE = "https://login.example.com/", "contract"
SECRET = "a shared secret of at least thirty-two bytes"
PLENTY = {"requests_per_s": 1_000_000, "requests_burst": 1_000_000}
NDJSON = "application/x-ndjson"


@dataclass(frozen=True)
class ContractResources:
    """The resources that paths of the data plane name."""

    base: str
    account: TenantAccount
    things: CollectionClient
    names: Mapping[str, str]

    def path(self, operation: HttpOperation[Call]) -> str:
        return operation.path.format(**{**self.names, "id": self._id(operation)})

    def _id(self, operation: HttpOperation[Call]) -> str:
        return self.names["import" if "/imports/" in operation.path else "document"]

    def key(self, *scopes: str, collections: list[str] | None = None) -> Caller:
        key = make_key(self.account.tenant, scopes=list(scopes), collections=collections)
        return with_key(self.base, key)

    def anonymous(self) -> Caller:
        """Return a web page's caller, whose publishable key has all scopes by mistake."""
        key = make_key(
            self.account.tenant, kind=ApiKey.Kind.PUBLISHABLE, scopes=[*DATA_SCOPES, "admin"]
        )
        return Caller(self.base, {"Rillbase-Key": key})

    def end_user(self) -> Caller:
        claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "exp": int(time.time()) + 600}
        page = self.anonymous()
        page.headers["Authorization"] = f"Bearer {jwt.encode(claims, SECRET, 'HS256')}"
        return page


@cache
def declared() -> dict[str, HttpOperation[Call]]:
    """Return every call of the data plane, as the server declares them."""
    from aggregates.api.operations import OPERATIONS as AGGREGATES
    from analytics.api.iceberg_operations import CATALOGUE
    from analytics.api.operations import OPERATIONS as DATASETS
    from documents.api.operations import OPERATIONS as DOCUMENTS
    from rillbase_server import live
    from storage_engine.topics.api.operations import OPERATIONS as TOPICS

    all_of_them = (
        *DOCUMENTS,
        *TOPICS,
        *AGGREGATES,
        *DATASETS,
        *CATALOGUE,
        *live.build().operations,
    )
    return {f"{operation.method} {operation.path}": operation for operation in all_of_them}


@cache
def contract_resources(base: str) -> ContractResources:
    account = make_tenant(plan="dedicated")
    Quota(tenant=account.tenant, limits=PLENTY).save(using="staff")
    things = make_collection(
        base, account=account, name="things", rules={"read": True, "create": True}
    )
    things.insert({"_id": "a", "xs": [1, 2]})
    topic = make_topic(base, account=account)
    aggregate = make_aggregate(base, account=account)
    shop = make_dataset(base, account=account)
    shop.upload({"orders": {"id": 1}}, id="first")
    admin = with_key(base, account.admin_key)
    lines = admin.call("POST", f"{things.path}/import", raw=b"{}", Content_Type=NDJSON)
    assert lines.status_code == 200, lines.text
    issuer = {"name": "login", "issuer": ISSUER, "audience": AUDIENCE, "algorithms": ["HS256"]}
    path = f"/api/v1/tenants/{account.slug}/issuers"
    assert admin.post(path, {**issuer, "secret": SECRET}).status_code == 201
    names = {
        "collection": things.name,
        "document": "a",
        "import": lines.json()["id"],
        "topic": topic.name,
        "subscription": topic.subscribe(id="1")["subscription_id"],
        "aggregate": aggregate.name,
        "dataset": shop.name,
        "upload": "first",
        "tenant": account.slug,
        "namespace": shop.name,
        "table": "orders",
    }
    return ContractResources(base, account, things, names)


def begin(caller: Caller, operation: HttpOperation[Call], path: str) -> requests.Response:
    """Call an operation with a minimal request, without reading an endless response."""
    body = None if operation.method in ("GET", "DELETE") else b"{}"
    types: Any = operation.describes.get("requestBody") or {}
    media_type = next(iter(types.get("content", {})), "application/json")
    answer = requests.request(
        operation.method,
        caller.base + path,
        data=body,
        headers={**caller.headers, **({"Content-Type": media_type} if body else {})},
        timeout=30,
        stream=True,
    )
    if answer.headers.get("Content-Type") == "text/event-stream":
        answer.close()
    else:
        answer.content  # noqa: B018 -- reads it, so that the connection is free
    return answer
