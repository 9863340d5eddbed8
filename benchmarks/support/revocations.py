"""The time from a revocation until the key's connections to another server are closed.

A client connects to one server with a key, an admin revokes the key at another, and the time is
measured from the response to the admin until the client reads the close frame. Without Valkey, it
depends on the periodic re-check.
"""

from __future__ import annotations

import asyncio
import json
import time
import urllib.request
from dataclasses import dataclass

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from benchmarks.support.client import opened
from benchmarks.support.installation import Installation, python, web
from benchmarks.support.report import Report, percentile

_MAKE_KEYS = """
import json, sys
import django; django.setup()
from tests.make import make_key, make_tenant
from tenants.models import ApiKey, Quota
from foundation.scope import scoped
account = make_tenant(plan="dedicated")
plenty = dict.fromkeys(("requests_per_s", "requests_burst", "api_keys", "connections"), 1000000)
Quota(tenant=account.tenant, limits=plenty).save(using="staff")
made_keys = [make_key(account.tenant) for _ in range(int(sys.argv[1]))]
texts = {text.split("_")[2]: text for text in made_keys}
with scoped(tenant_id=account.tenant.id):
    rows = ApiKey.objects.filter(key_id__in=texts)
    keys = [[str(row.id), texts[row.key_id]] for row in rows]
print(json.dumps({"slug": account.slug, "admin": account.admin_key, "keys": keys}))
"""


@dataclass(frozen=True, slots=True)
class _Tenant:
    slug: str
    admin: str
    #: The id and the text of each key.
    keys: list[tuple[str, str]]


def measure(report: Report, installed: Installation, revocations: int) -> None:
    """Measure with Valkey, then with an address at which there is none."""
    nowhere = {"EVENTS_URL": "redis://127.0.0.1:1/0"}
    for name, what, settings, goal in (
        ("revocation", "from a revocation to the end of its connection at another server", {}, 100),
        ("revocation_alone", "the same while Valkey is unavailable", nowhere, 1000),
    ):
        tenant = _Tenant(**json.loads(python(installed, _MAKE_KEYS, str(revocations))))
        with (
            web(installed, "rillbase_server.asgi:application", settings) as here,
            web(installed, "rillbase_server.asgi:application", settings) as there,
        ):
            delays_ms = asyncio.run(_delays_ms(tenant, here.port, there.port))
        report.add(f"{name}_p50_ms", percentile(delays_ms, 0.5), "ms", f"{what}, median")
        report.add(
            f"{name}_p99_ms",
            percentile(delays_ms, 0.99),
            "ms",
            "the same, 99th percentile",
            f"<= {goal}",
        )


async def _delays_ms(tenant: _Tenant, here: int, there: int) -> list[float]:
    return [await _delay_ms(tenant, key_id, text, here, there) for key_id, text in tenant.keys]


async def _delay_ms(tenant: _Tenant, key_id: str, text: str, here: int, there: int) -> float:
    client = await opened(here, text)
    closed = asyncio.create_task(_closed_at(client))
    revoked_at = await asyncio.to_thread(_revoke, tenant, key_id, there)
    return max(0.0, (await closed - revoked_at) * 1000)


async def _closed_at(client: ClientConnection) -> float:
    try:
        while True:
            await client.recv()
    except ConnectionClosed:
        return time.perf_counter()


def _revoke(tenant: _Tenant, key_id: str, port: int) -> float:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/api/v1/tenants/{tenant.slug}/api-keys/{key_id}",
        headers={"Authorization": f"Bearer {tenant.admin}"},
        method="DELETE",
    )
    urllib.request.urlopen(request, timeout=30).read()
    return time.perf_counter()
