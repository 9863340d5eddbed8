"""A topic of a new tenant, for tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.caller import Caller, with_key
from tests.make import TenantAccount, make_tenant

Json = dict[str, Any]


@dataclass(frozen=True)
class Topic:
    """A topic, and a caller with all rights to it."""

    account: TenantAccount
    caller: Caller
    name: str

    @property
    def path(self) -> str:
        return f"/v1/topics/{self.name}"

    @property
    def control_path(self) -> str:
        return f"/api/v1/tenants/{self.account.slug}/topics/{self.name}"

    def publish(self, **body: object) -> Json:
        answer = self.caller.post(f"{self.path}/publications", body)
        assert answer.status_code == 201, answer.text
        content: Json = answer.json()
        return content

    def subscribe(self, **body: object) -> Json:
        answer = self.caller.post(f"{self.path}/subscriptions", body)
        assert answer.status_code == 201, answer.text
        content: Json = answer.json()
        return content


def make_topic(base: str, *, account: TenantAccount | None = None, **body: object) -> Topic:
    account = account or make_tenant(plan="dedicated")
    caller = with_key(base, account.admin_key)
    answer = caller.post(f"/api/v1/tenants/{account.slug}/topics", {"name": "news", **body})
    assert answer.status_code == 201, answer.text
    return Topic(account, caller, answer.json()["name"])


def names(publications: list[Json]) -> list[str]:
    return [publication["publication_id"] for publication in publications]
