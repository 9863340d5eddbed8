"""A tenant's topic, as tests use it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.caller import Caller, with_key
from tests.make import MadeTenant, make_tenant

Json = dict[str, Any]


@dataclass(frozen=True)
class Topic:
    """A topic, and a caller who may do everything with it."""

    made: MadeTenant
    caller: Caller
    name: str

    @property
    def path(self) -> str:
        return f"/v1/topics/{self.name}"

    @property
    def control_path(self) -> str:
        return f"/api/v1/tenants/{self.made.slug}/topics/{self.name}"

    def publish(self, **body: object) -> Json:
        answer = self.caller.post(f"{self.path}/publications", body)
        assert answer.status_code == 201, answer.text
        found: Json = answer.json()
        return found

    def subscribe(self, **body: object) -> Json:
        answer = self.caller.post(f"{self.path}/subscriptions", body)
        assert answer.status_code == 201, answer.text
        found: Json = answer.json()
        return found


def make_topic(base: str, *, made: MadeTenant | None = None, **body: object) -> Topic:
    made = made or make_tenant(plan="dedicated")
    caller = with_key(base, made.admin_key)
    answer = caller.post(f"/api/v1/tenants/{made.slug}/topics", {"name": "news", **body})
    assert answer.status_code == 201, answer.text
    return Topic(made, caller, answer.json()["name"])


def names(publications: list[Json]) -> list[str]:
    return [publication["publication_id"] for publication in publications]
