"""A member of a tenant who lists its subscriptions and requests delivery traces."""

from __future__ import annotations

from typing import Any

from tests.caller import with_key
from tests.documents.collection import CollectionClient
from tests.waiting import wait_until


class Member:
    """A member of a collection's tenant."""

    def __init__(self, todos: CollectionClient) -> None:
        self.caller = with_key(todos.caller.base, todos.account.admin_key)
        self.path = f"/api/v1/tenants/{todos.account.slug}/subscriptions"

    def subscription(self, name: str) -> str:
        """Return the public id of the subscription that its client calls so, once it is listed."""
        collected: list[str] = []

        def is_listed() -> bool:
            items = self.caller.get(self.path).json()["items"]
            collected[:] = [item["id"] for item in items if item["name"] == name]
            return bool(collected)

        wait_until(is_listed, what=f"the subscription {name!r} to be listed")
        return collected[0]

    def why(self, name: str, document: str, version: int | None = None) -> dict[str, Any]:
        """Request the trace of a document for a subscription."""
        query = f"?document={document}" + (f"&version={version}" if version is not None else "")
        answer = self.caller.get(f"{self.path}/{self.subscription(name)}/why{query}")
        assert answer.status_code == 200, answer.text
        body: dict[str, Any] = answer.json()
        return body

    def verdict(self, name: str, document: str, expected: str, version: int | None = None) -> Any:
        """Ask until the verdict is this one; return the whole answer."""
        last: dict[str, Any] = {}

        def is_reached() -> bool:
            last.clear()
            last.update(self.why(name, document, version))
            return bool(last["verdict"] == expected)

        try:
            wait_until(is_reached, what=f"the verdict {expected!r}")
        except AssertionError as error:
            raise AssertionError(f"{error}: {last}") from None
        return last

    def until_known(self, name: str, document: str, version: int) -> dict[str, Any]:
        """Request the trace until the server knows a version."""
        last: dict[str, Any] = {}

        def is_known() -> bool:
            last.clear()
            last.update(self.why(name, document, version))
            return last["verdict"] not in ("under_way", "not_published")

        wait_until(is_known, what=f"version {version} to be heard of")
        return last


def stages(trace: dict[str, Any]) -> dict[str, str]:
    """Return the state of each stage in the trace."""
    return {step["stage"]: step["state"] for step in trace["steps"]}


def step(trace: dict[str, Any], stage: str) -> dict[str, Any]:
    (trace_step,) = [step for step in trace["steps"] if step["stage"] == stage]
    return dict(trace_step)
