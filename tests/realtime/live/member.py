"""A member of a tenant who looks at its subscriptions and asks why."""

from __future__ import annotations

from typing import Any

from tests.caller import with_key
from tests.documents.collection import MadeCollection
from tests.waiting import wait_until


class Member:
    """A member of a collection's tenant who looks at its subscriptions."""

    def __init__(self, todos: MadeCollection) -> None:
        self.caller = with_key(todos.caller.base, todos.made.admin_key)
        self.path = f"/api/v1/tenants/{todos.made.slug}/subscriptions"

    def subscription(self, name: str) -> str:
        """Return the public id of the subscription that its client calls so, once it is listed."""
        found: list[str] = []

        def is_listed() -> bool:
            items = self.caller.get(self.path).json()["items"]
            found[:] = [item["id"] for item in items if item["name"] == name]
            return bool(found)

        wait_until(is_listed, what=f"the subscription {name!r} to be listed")
        return found[0]

    def why(self, name: str, document: str, version: int | None = None) -> dict[str, Any]:
        """Ask why a subscription heard of a document, or did not."""
        query = f"?document={document}" + (f"&version={version}" if version is not None else "")
        answer = self.caller.get(f"{self.path}/{self.subscription(name)}/why{query}")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def verdict(self, name: str, document: str, wanted: str, version: int | None = None) -> Any:
        """Ask until the verdict is this one; return the whole answer."""
        last: dict[str, Any] = {}

        def is_said() -> bool:
            last.clear()
            last.update(self.why(name, document, version))
            return bool(last["verdict"] == wanted)

        try:
            wait_until(is_said, what=f"the verdict {wanted!r}")
        except AssertionError as vain:
            raise AssertionError(f"{vain}: {last}") from None
        return last

    def settled(self, name: str, document: str, version: int) -> dict[str, Any]:
        """Ask until the server has heard of a version."""
        last: dict[str, Any] = {}

        def is_heard_of() -> bool:
            last.clear()
            last.update(self.why(name, document, version))
            return last["verdict"] not in ("under_way", "not_published")

        wait_until(is_heard_of, what=f"version {version} to be heard of")
        return last


def stages(told: dict[str, Any]) -> dict[str, str]:
    """Return the state of each stage that is told of."""
    return {step["stage"]: step["state"] for step in told["steps"]}


def step(told: dict[str, Any], stage: str) -> dict[str, Any]:
    (found,) = [step for step in told["steps"] if step["stage"] == stage]
    return dict(found)
