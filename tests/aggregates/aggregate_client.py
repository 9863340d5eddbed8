"""An aggregate of a new tenant, for tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.caller import Caller, with_key
from tests.make import TenantAccount, make_tenant

Json = dict[str, Any]

#: Requests to a customer's endpoints, in buckets of five minutes.
REQUESTS: Json = {
    "name": "requests_5m",
    "dimensions": ["customer", "app", "endpoint"],
    "time": {"field": "at", "bucket": "5m"},
    "measures": {
        "count": {"op": "count"},
        "total": {"op": "sum", "field": "latency_ms", "type": "int"},
        "latency": {"op": "avg", "field": "latency_ms"},
        "peak": {"op": "max", "field": "latency_ms"},
    },
    "rollups": [["customer"], ["customer", "app"]],
}


@dataclass(frozen=True)
class AggregateClient:
    """An aggregate, and a caller with all rights to it."""

    account: TenantAccount
    caller: Caller
    name: str

    @property
    def path(self) -> str:
        return f"/v1/aggregates/{self.name}"

    @property
    def control_path(self) -> str:
        return f"{aggregates(self.account)}/{self.name}"

    def add(self, *events: Json, **headers: str) -> Json:
        answer = self.caller.post(f"{self.path}/events", list(events), **headers)
        assert answer.status_code in (200, 201), answer.text
        body: Json = answer.json()
        return body

    def query(self, **request: object) -> Json:
        """Query the aggregate."""
        request.setdefault("snapshot", "fresh")
        named = {name.rstrip("_"): value for name, value in request.items()}
        answer = self.caller.post(f"{self.path}/query", named)
        assert answer.status_code == 200, answer.text
        body: Json = answer.json()
        return body

    def rows(self, **request: object) -> list[Json]:
        documents: list[Json] = self.query(**request)["rows"]
        return documents


def aggregates(account: TenantAccount, name: str = "") -> str:
    return f"/api/v1/tenants/{account.slug}/aggregates" + (f"/{name}" if name else "")


def make_aggregate(
    base: str, *, account: TenantAccount | None = None, **body: object
) -> AggregateClient:
    account = account or make_tenant(plan="dedicated")
    caller = with_key(base, account.admin_key)
    answer = caller.post(aggregates(account), {**REQUESTS, **body})
    assert answer.status_code == 201, answer.text
    return AggregateClient(account, caller, answer.json()["name"])
