"""Keeps the demo tenant busy: vans drive, deliveries arrive, and a few clients watch.

    RILLBASE_KEY=rbk_dev_… python -m examples.demo

`make run` starts it with the demo tenant's key. It creates the collection `deliveries`, the topic
`vans`, the aggregate `sales`, a webhook and two charts on the overview, unless they exist, and a
key for data alone, which its clients use. It also runs a small PostgreSQL with the company's stock,
which the collection `stock` follows.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import psycopg
from websockets.exceptions import WebSocketException

from examples.browser.api import Api, CallRejected
from examples.demo import tenant
from examples.demo.couriers import Company
from examples.demo.warehouse import Warehouse
from rillbase_server.launcher.embedded import EmbeddedServerError

TICK_S = 2.0
#: A position is shown until the next ones replace it.
POSITION_S = 3 * TICK_S
SEED = 7
FAILURES = (CallRejected, OSError, WebSocketException, EmbeddedServerError, psycopg.Error)
RETRY_S = 2.0
KEY_REJECTED = {401, 403}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m examples.demo", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--url", default=os.environ.get("RILLBASE_URL", "http://127.0.0.1:8080"))
    parser.add_argument("--key-file", type=Path, help="read the key from this file")
    parser.add_argument("--ready-file", type=Path, help="write the process id here once it runs")
    parser.add_argument("--seconds", type=float, help="exit after this time")
    return parser.parse_args()


def main() -> int:
    """Run until the time is over, or until the key is rejected. Other failures are retried."""
    options = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    end = None if options.seconds is None else time.monotonic() + options.seconds
    try:
        while not attempt(options, end):
            time.sleep(RETRY_S)
    except KeyRejected:
        return 1
    except KeyboardInterrupt:
        return 0
    return 0


class KeyRejected(Exception):
    """The key is not valid. The launcher writes the present one before it starts the demo."""


def attempt(options: argparse.Namespace, end: float | None) -> bool:
    """Run once, report a failure, and return whether the time is over."""
    file = options.key_file
    try:
        key = os.environ.get("RILLBASE_KEY", "") if file is None else file.read_text().strip()
        run(options.url.rstrip("/"), key, options, end)
    except FAILURES as error:
        print(f"Rillbase at {options.url}: {error}", file=sys.stderr, flush=True)  # noqa: T201
        if isinstance(error, CallRejected) and error.status in KEY_REJECTED:
            raise KeyRejected from None
        return end is not None and time.monotonic() >= end
    return True


def run(url: str, key: str, options: argparse.Namespace, end: float | None) -> None:
    api, company = Api(url, key), Company.founded(SEED)
    slug = api.call("GET", "/v1/whoami")["tenant"]
    if tenant.define(api, slug):
        events = company.history(datetime.now(UTC))
        api.call("POST", f"/v1/aggregates/{tenant.AGGREGATE}/events", events)
    for delivery in company.deliveries.values():
        put(api, delivery.document())
    tenant.pin_charts(api, slug)
    tenant.receive_webhooks(api, slug)
    if options.key_file is not None:
        key = tenant.data_key(url, key, slug, options.key_file.with_suffix(".data-key"))
    clients = [tenant.Client(url, key, query) for query in tenant.SUBSCRIPTIONS]
    try:
        with Warehouse.opened(random.Random(SEED)) as warehouse:  # noqa: S311 -- sample data
            warehouse.follow(api, slug)
            if options.ready_file is not None:
                options.ready_file.write_text(str(os.getpid()))
            work(Api(url, key), company, clients, warehouse, end)
    finally:
        for client in clients:
            client.close()


def work(
    api: Api,
    company: Company,
    clients: list[tenant.Client],
    warehouse: Warehouse,
    end: float | None,
) -> None:
    """Let time pass, until it is over or a client fails."""
    while end is None or time.monotonic() < end:
        if errors := [client.error for client in clients if client.error]:
            raise CallRejected(errors[0])
        company.drive(TICK_S)
        changed, sales = company.advance(TICK_S)
        for delivery in changed:
            document = delivery.document()
            api.call("PATCH", path_of(document), {"$set": {**document}}, but={404})
        if sales:
            api.call("POST", f"/v1/aggregates/{tenant.AGGREGATE}/events", sales)
            warehouse.sell(sales)
        for van in company.vans:
            clients[0].publish(company.position(van, POSITION_S))
        time.sleep(TICK_S)


def put(api: Api, document: dict[str, object]) -> None:
    """Insert a delivery, or replace the one that an earlier start inserted."""
    api.call("PUT", path_of(document), document)


def path_of(document: dict[str, object]) -> str:
    return f"/v1/collections/{tenant.COLLECTION}/documents/{document['_id']}"


if __name__ == "__main__":
    sys.exit(main())
