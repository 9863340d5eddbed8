"""Views over collections of both backends give the same result as a GROUP BY."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from tests.aggregates.grouping import comparable, document
from tests.aggregates.views.view_client import (
    grouped_documents,
    is_active,
    make_view,
    settle,
    shown,
    state,
    write,
)
from tests.caller import problem
from tests.waiting import wait_until

if TYPE_CHECKING:
    from documents.backend import Backend
    from tests.documents.collection import CollectionClient


@pytest.mark.usefixtures("follower")
@pytest.mark.parametrize("seed", range(3))
def test_a_view_is_a_group_by_after_any_history(collection: CollectionClient, seed: int) -> None:
    luck = random.Random(seed)
    collection.insert_many([document(luck, key) for key in range(10, 20)])
    view = make_view(collection)
    with ThreadPoolExecutor(3) as writers:
        # Some writes before the backfill, some during it, some after it.
        for number in range(3):
            writers.submit(write, collection, random.Random(10 * seed + number), 25)
    settle(view, collection)
    assert is_active(view)
    write(collection, luck, 15)
    settle(view, collection)


@pytest.mark.usefixtures("follower")
def test_the_least_and_the_most_go_with_their_documents(collection: CollectionClient) -> None:
    view = make_view(collection)
    for n in (1, 5, 9):
        collection.insert({"_id": n, "kind": "a", "n": n, "who": {"name": f"w{n}"}})
    settle(view, collection)
    collection.caller.delete(f"{collection.path}/documents/~9")
    collection.caller.patch(f"{collection.path}/documents/~1", {"$set": {"kind": "b"}})
    settle(view, collection)
    row = shown(view)["a"]
    assert (row["least"], row["most"], row["people"]) == (5, 5, 1)


@pytest.mark.usefixtures("follower")
def test_a_view_contains_its_snapshot(collection: CollectionClient) -> None:
    view = make_view(collection)
    collection.insert({"_id": 1, "kind": "a", "n": 1, "who": {"name": "w"}})
    settle(view, collection)
    first = view.query()["as_of"]
    assert first is not None
    wait_until(lambda: view.query()["as_of"] > first, what="a later moment")


@pytest.mark.usefixtures("follower")
def test_a_view_follows_a_collection_to_the_other_backend(
    collection: CollectionClient, backend: Backend
) -> None:
    from tests.documents.moving import OTHER, move

    luck = random.Random(7)
    collection.insert_many([document(luck, key) for key in range(20)])
    view = make_view(collection)
    settle(view, collection)
    move(collection, OTHER[backend])
    write(collection, luck, 15)
    settle(view, collection)


@pytest.mark.usefixtures("follower")
def test_events_cannot_be_added_to_a_view(collection: CollectionClient) -> None:
    view = make_view(collection)
    problem(view.caller.post(f"{view.path}/events", {"kind": "a"}), 409, "conflict")


@pytest.mark.usefixtures("follower")
def test_queries_use_the_old_rows_until_a_rebuild_is_complete(
    collection: CollectionClient,
) -> None:
    collection.insert_many([document(random.Random(5), key) for key in range(20)])
    view = make_view(collection)
    settle(view, collection)
    generation = state(view)["generation"]
    snapshot = view.query()["snapshot"]
    assert view.caller.post(f"{view.control_path}:rebuild").status_code == 202
    expected = grouped_documents(collection)

    def rebuilt() -> bool:
        assert shown(view) == expected
        for moment in ({}, {"snapshot": snapshot}):
            body = {"group_by": ["kind"], **moment}
            answer = view.caller.post(f"{view.path}/query", body)
            # A snapshot that is older than a minute is reported as expired.
            assert answer.status_code == 410 or comparable(answer.json()["rows"]) == expected
        return is_active(view)

    wait_until(rebuilt, what="the rebuild")
    assert rebuilt()
    assert state(view)["documents_read"] >= 0
    assert state(view)["generation"] > generation


@pytest.mark.usefixtures("follower")
def test_changed_measures_are_backfilled_beside_the_old_ones(collection: CollectionClient) -> None:
    collection.insert({"_id": 1, "kind": "a", "n": 4, "who": {"name": "w"}})
    view = make_view(collection)
    settle(view, collection)
    measures = {"sum": {"op": "sum", "field": "n", "type": "int"}}
    assert view.caller.patch(view.control_path, {"measures": measures}).status_code == 200
    wait_until(lambda: is_active(view), what="the new rows")
    assert view.rows(group_by=["kind"]) == [{"kind": "a", "sum": 4}]


@pytest.mark.usefixtures("follower")
def test_a_view_of_a_dropped_collection_reports_it(collection: CollectionClient) -> None:
    view = make_view(collection)
    wait_until(lambda: is_active(view), what="the view")
    path = f"/api/v1/tenants/{collection.account.slug}/collections/{collection.name}"
    assert view.caller.delete(path).status_code == 204
    wait_until(lambda: state(view)["state"] == "failed", what="the view to notice")
    assert "deleted" in state(view)["error"]
    assert view.caller.delete(view.control_path).status_code == 204


@pytest.mark.usefixtures("follower")
def test_documents_that_cannot_be_evaluated_are_left_out_and_counted(
    collection: CollectionClient,
) -> None:
    """Both those that exist when the view is created, and those that are written later."""
    costly = {"$expr": {"$gte": [{"$size": {"$range": [0, "$n"]}}, 0]}}
    collection.insert_many([{"_id": 1, "kind": "a", "n": 4}, {"_id": 2, "kind": "a", "n": 10**8}])
    view = make_view(collection, source={"collection": collection.name, "filter": costly})

    def shows_counts(rows: int, left_out: int) -> bool:
        answer = view.caller.post(f"{view.path}/query", {"group_by": ["kind"]}).json()
        rows_of = [row["count"] for row in answer.get("rows", [])]
        counts = [notice["count"] for notice in answer.get("notices", [])]
        received = [notice["count"] for notice in state(view)["notices"]]
        return (rows_of, counts, received) == ([rows], [left_out], [left_out])

    wait_until(lambda: shows_counts(1, 1), what="the view to say what it lacks")
    collection.insert_many([{"_id": 3, "kind": "a", "n": 10**8}, {"_id": 4, "kind": "a", "n": 1}])
    wait_until(lambda: shows_counts(2, 2), what="the view to say what it lacks")
    assert state(view)["notices"][0]["code"] == "documents_not_evaluated"

    def logged() -> bool:
        from foundation.scope import scoped
        from tenants import error_log
        from tenants.models import ErrorEntry

        error_log.flush()
        with scoped(tenant_id=collection.account.tenant.id):
            entries = ErrorEntry.objects.filter(code="documents_not_evaluated", area="aggregate")
            return entries.exists()

    wait_until(logged, what="the error log")
