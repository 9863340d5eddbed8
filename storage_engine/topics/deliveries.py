"""Notifies webhooks of what subscriptions match, and of their end.

Every second a sweep asks the node, for each subscription with a webhook, for what follows its
position. What it finds becomes a delivery in the transaction that advances the position, so sweeps
may overlap or be interrupted: nothing is delivered twice or left out. Webhooks sign, send and
retry. The last delivery of a subscription reports that it has ended.

The node keeps such a subscription for a while longer than its `to` (`subscribe.GRACE_MS`), so that
the matches of its last second can still be read; what is later than `to` is dropped here.
"""

from __future__ import annotations

import datetime
import json
import logging
import time
from collections.abc import Iterator, Mapping
from itertools import groupby, islice
from operator import attrgetter
from uuid import UUID

from redis.exceptions import RedisError

from data_plane.times import rfc3339
from foundation.errors import Unavailable
from foundation.json_types import JsonObject, JsonValue
from foundation.scope import scoped
from foundation.tasks import task
from foundation.tasks.definition import PERIODIC
from foundation.valkey_sockets import ValkeySockets
from foundation.valkey_wire import Reply
from storage_engine.models import DeliveredSubscription, Topic
from storage_engine.node import admin
from storage_engine.topics import places, positions
from tenants.models import Webhook
from tenants.webhook_events import deliver

log = logging.getLogger(__name__)

NAME = "storage_engine.topics.deliver"
PUBLICATIONS, ENDED = "topic.publications", "topic.subscription_ended"
ALIAS = "relay"
RUN_S = 5.0
#: Subscriptions that are asked about in one command; publications and bytes in one delivery.
TOGETHER, BATCH, BATCH_BYTES = 100, 100, 1024 * 1024
#: A subscription is over when everything published within its time must have been read.
SETTLED = datetime.timedelta(seconds=2)


@task(name=NAME, policy=PERIODIC, quiet=True)
def sweep() -> None:
    """Create the deliveries that are due."""
    if not admin.is_configured():
        return
    deadline = time.monotonic() + RUN_S
    rows = DeliveredSubscription.unscoped.using(ALIAS).select_related("topic", "webhook")
    by_tenant = attrgetter("tenant_id")
    for tenant_id, own in groupby(rows.order_by("tenant_id", "pk").iterator(), by_tenant):
        if time.monotonic() > deadline:
            return
        try:
            _sweep_tenant(tenant_id, list(own), deadline)
        except (Unavailable, RedisError) as error:
            log.warning("subscriptions could not be read: %s", error)


def _sweep_tenant(tenant_id: UUID, rows: list[DeliveredSubscription], deadline: float) -> None:
    now = datetime.datetime.now(datetime.UTC)
    with admin.tenant_connection(tenant_id) as node:
        for chunk in _chunks(rows):
            matches = {} if node is None else _read(node, chunk)
            while any(matches.values()) and time.monotonic() < deadline:
                delivered = [
                    row for row in chunk if _deliver_batch(row, matches.get(row.name, []) or [])
                ]
                matches = _read(node, delivered) if delivered and node is not None else {}
            missing = {name for name, publications in matches.items() if publications is None}
            for row in chunk:
                over = row.expires_at + SETTLED < now and not matches.get(row.name)
                if node is None or row.name in missing or over or _is_dead(row.webhook):
                    _end(row)
                    if node is not None:
                        node.call("RB.UNSUB", row.name)


def _chunks(rows: list[DeliveredSubscription]) -> Iterator[list[DeliveredSubscription]]:
    remaining = iter(rows)
    while chunk := list(islice(remaining, TOGETHER)):
        yield chunk


def _is_dead(webhook: Webhook) -> bool:
    return webhook.state == Webhook.State.DISABLED


PublicationFields = Mapping[bytes, Reply]


def _read(
    node: ValkeySockets, rows: list[DeliveredSubscription]
) -> dict[str, list[PublicationFields] | None]:
    """Return what subscriptions have matched after their positions; None: it has ended."""
    words = [word for row in rows for word in (row.name, row.position)]
    reply = node.call("RB.SUB.READ", "COUNT", BATCH, *words)
    matches: dict[str, list[PublicationFields] | None] = {}
    for pair in reply if isinstance(reply, list) else []:
        name, publications = pair if isinstance(pair, list) else (None, None)
        if isinstance(name, bytes):
            matches[name.decode()] = (
                [_pairs(p) for p in publications] if isinstance(publications, list) else None
            )
    return matches


def _pairs(flat: Reply) -> PublicationFields:
    """Return a map, which RESP2 clients receive as alternating names and values."""
    items = flat if isinstance(flat, list) else []
    names, values = items[::2], items[1::2]
    return {n: v for n, v in zip(names, values, strict=True) if isinstance(n, bytes)}


def _deliver_batch(row: DeliveredSubscription, publications: list[PublicationFields]) -> bool:
    """Create a delivery of the matches and advance. Return whether there may be more."""
    if not publications or _is_dead(row.webhook):
        return False
    batch, position = _batch(row, publications)
    with scoped(tenant_id=row.tenant_id):
        own = DeliveredSubscription.objects.filter(pk=row.pk, position=row.position)
        if not own.update(position=position):
            return False  # another sweep has delivered it
        if batch:
            deliver([row.webhook], PUBLICATIONS, {**_head(row), "publications": batch})
    row.position = position
    return True


def _batch(
    row: DeliveredSubscription, publications: list[PublicationFields]
) -> tuple[list[JsonValue], int]:
    """Return what goes into one delivery, and the position after it."""
    batch, size_bytes, position = list[JsonValue](), 0, row.position
    ends_ms = row.expires_at.timestamp() * 1000
    for publication in publications:
        shown = _event_data(row, publication)
        size_bytes += len(json.dumps(shown))
        if batch and size_bytes > BATCH_BYTES:
            break
        position = _number(publication, b"position")
        if _number(publication, b"at") <= ends_ms:
            batch.append(shown)
    return batch, position


def _event_data(row: DeliveredSubscription, publication: PublicationFields) -> JsonObject:
    data, place, name = (publication.get(n) for n in (b"data", b"place", b"name"))
    words = place if isinstance(place, list) else []
    topic, _, _ = row.name.partition(":")
    return {
        "publication_id": name.decode() if isinstance(name, bytes) else "",
        "position": positions.token_of(topic, _number(publication, b"position")),
        "at": rfc3339(_number(publication, b"at")),
        "expires_at": rfc3339(_number(publication, b"until")),
        **places.shown(tuple(w for w in words if isinstance(w, bytes)), row.topic.kind),
        "data": json.loads(data) if isinstance(data, bytes) else None,
    }


def _number(publication: PublicationFields, name: bytes) -> int:
    value = publication.get(name)
    return value if isinstance(value, int) else 0


def _end(row: DeliveredSubscription) -> None:
    """Announce the end of the subscription, once."""
    with scoped(tenant_id=row.tenant_id):
        n_deleted, _ = DeliveredSubscription.objects.filter(pk=row.pk).delete()
        if n_deleted and not _is_dead(row.webhook):
            deliver([row.webhook], ENDED, _head(row))


def end_all(topic: Topic) -> None:
    """Notify the webhooks of a topic that is dropped. Its tenant is in scope."""
    rows = DeliveredSubscription.objects.filter(topic=topic).select_related("topic", "webhook")
    for row in rows:
        _end(row)


def _head(row: DeliveredSubscription) -> JsonObject:
    return {
        "topic": row.topic.name,
        "subscription_id": row.public_id,
        "subscriber": row.subscriber or None,
    }
