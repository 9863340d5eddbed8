"""A tenant with content on every page of the console."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tests.aggregates.aggregate_client import make_aggregate
from tests.aggregates.test_events import request
from tests.analytics.dataset_client import make_dataset
from tests.caller import with_key
from tests.documents.collection import make_collection
from tests.make import TenantAccount, make_tenant
from tests.storage_engine.topics.topic_client import make_topic

POSTS = {"posts": {"columns": {"id": "int64", "author": "string", "likes": "int64"}, "key": ["id"]}}
VIENNA = (16.3738, 48.2082)


@dataclass(frozen=True)
class SampleTenant:
    """The tenant, and its detail pages, each with a text that shows that it has loaded."""

    account: TenantAccount
    pages: Mapping[str, str]


def create_sample_tenant(base: str) -> SampleTenant:
    """Make a tenant with documents, a topic, an aggregate, a dataset, a webhook and errors."""
    account = make_tenant(plan="dedicated")
    notes = make_collection(base, account=account, name="notes")
    owners = ("ada", "grace", "linus", "margaret")
    notes.insert_many(
        [
            {
                "_id": f"note-{n}",
                "title": f"Note {n}",
                "owner": owners[n % 4],
                "rank": n * 37 % 101,
                "done": n % 3 == 0,
                "tags": ["home", "work"][: n % 3],
            }
            for n in range(40)
        ]
    )
    notes.ask({"filter": {"rank": {"$nope": 1}}})
    topic = make_topic(base, account=account, name="traffic", kind="geo")
    for n in range(12):
        place = [VIENNA[0] + n % 4 * 0.01, VIENNA[1] + n // 4 * 0.008]
        topic.publish(geo={"center": place, "radius_m": 200}, data={"jam": n}, expires_in_s=3600)
    requests_5m = make_aggregate(base, account=account)
    for n, customer in enumerate(("acme", "bolt", "corner shop")):
        requests_5m.add(*(request(customer, 20 * n + 5 * k) for k in range(3 * n + 2)))
    posts = make_dataset(base, account=account, name="posts", tables=POSTS)
    posts.insert("posts", *({"id": n, "author": owners[n % 4], "likes": n} for n in range(100)))
    body = {"name": "Chat", "url": "http://127.0.0.1:8999/", "events": ["api_key.*"]}
    answer = with_key(base, account.admin_key).post(
        f"/api/v1/tenants/{account.slug}/webhooks", body
    )
    assert answer.status_code == 201, answer.text
    return SampleTenant(
        account,
        {
            "/topics/traffic": ".topic-map, svg[role=img]",
            "/aggregates/requests_5m": ".bar-cell",
            "/datasets/posts": ".stage-card",
            "/datasets/posts/query": ".asking .editor-host",
            "/datasets/posts/sql": ".sql-statement .editor-host",
            "/datasets/posts/tables": "h2.mono",
            f"/webhooks/{answer.json()['id']}": ".page-body",
        },
    )
