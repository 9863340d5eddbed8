"""Views for tests, and what they show."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from tests.aggregates.grouping import BY_KIND, FILTER, comparable, document, grouped
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.aggregates.aggregate_client import AggregateClient, Json
    from tests.documents.collection import CollectionClient

#: A follower that was interrupted for less time resumes: streams retain entries for longer.
RESUMED_WITHIN_S = 8.0


def make_view(collection: CollectionClient, **members: object) -> AggregateClient:
    from tests.aggregates.aggregate_client import make_aggregate

    source = {"collection": collection.name, "filter": FILTER}
    definition = {**BY_KIND, "source": source, **members}
    return make_aggregate(collection.caller.base, account=collection.account, **definition)


def shown(view: AggregateClient) -> dict[str, Json]:
    """Return the view's rows; None while it is being built."""
    answer = view.caller.post(f"{view.path}/query", {"group_by": ["kind"], "snapshot": "fresh"})
    if answer.status_code == 409:
        return {}
    assert answer.status_code == 200, answer.text
    return comparable(answer.json()["rows"])


def grouped_documents(collection: CollectionClient) -> dict[str, Json]:
    return grouped(collection.query(limit=10_000))


def settle(view: AggregateClient, collection: CollectionClient) -> None:
    """Wait until the view reflects all documents."""
    expected = grouped_documents(collection)
    wait_until(lambda: shown(view) == expected, what="the view to show what there is")


def state(view: AggregateClient) -> Json:
    body: Json = view.caller.get(view.control_path).json()
    return body


def is_active(view: AggregateClient) -> bool:
    return bool(state(view)["state"] == "active")


def write(collection: CollectionClient, luck: random.Random, count: int) -> None:
    """Insert, replace, update and delete at random."""
    for _ in range(count):
        key = luck.randrange(30)
        path = f"{collection.path}/documents/~{key}"
        match luck.randrange(4):
            case 0:
                collection.caller.delete(path)
            case 1:
                collection.caller.patch(path, {"$inc": {"n": luck.randrange(-9, 9)}})
            case _:
                collection.caller.put(path, document(luck, key))


def generation_of(view: AggregateClient) -> int:
    """Return the number of the generation that queries see."""
    # Models can be imported once Django is set up.
    from aggregates.models import Aggregate
    from foundation.scope import scoped

    with scoped(tenant_id=view.account.tenant.id):
        return Aggregate.objects.get(name=view.name).generation
