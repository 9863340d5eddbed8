"""A tenant's aggregate, as tests use it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.caller import Caller, with_key
from tests.make import MadeTenant, make_tenant

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
class Made:
    """An aggregate, and a caller who may do everything with it."""

    made: MadeTenant
    caller: Caller
    name: str

    @property
    def path(self) -> str:
        return f"/v1/aggregates/{self.name}"

    @property
    def control_path(self) -> str:
        return f"{aggregates(self.made)}/{self.name}"

    def add(self, *events: Json, **headers: str) -> Json:
        answer = self.caller.post(f"{self.path}/events", list(events), **headers)
        assert answer.status_code in (200, 201), answer.text
        found: Json = answer.json()
        return found

    def query(self, **asked: object) -> Json:
        """Query what has been answered by now."""
        asked.setdefault("snapshot", "fresh")
        named = {name.rstrip("_"): value for name, value in asked.items()}
        answer = self.caller.post(f"{self.path}/query", named)
        assert answer.status_code == 200, answer.text
        found: Json = answer.json()
        return found

    def rows(self, **asked: object) -> list[Json]:
        found: list[Json] = self.query(**asked)["rows"]
        return found


def aggregates(made: MadeTenant, name: str = "") -> str:
    return f"/api/v1/tenants/{made.slug}/aggregates" + (f"/{name}" if name else "")


def make_aggregate(base: str, *, made: MadeTenant | None = None, **body: object) -> Made:
    made = made or make_tenant(plan="dedicated")
    caller = with_key(base, made.admin_key)
    answer = caller.post(aggregates(made), {**REQUESTS, **body})
    assert answer.status_code == 201, answer.text
    return Made(made, caller, answer.json()["name"])
