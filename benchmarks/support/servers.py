"""The servers that benchmarks of the app server use, with the contents of their database.

Code that depends on the product's internals is in this module and in the others that
`benchmarks.support.beside.OWN` lists. Each measured checkout uses its own version, so change them
together with the product, and keep their interface to the benchmarks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import psutil

from benchmarks.support.installation import Installation, Web, installation, python, service, web

_SEED = """
import json
import django; django.setup()
from documents.models import Collection, Index
from foundation.scope import scoped
from tenants.models import Quota
from tests.make import make_key, make_tenant
INDEXES = {
    "plain": {},
    "notes": {},
    "one": {"shard": [["shard", 1]]},
    "many": {"shard": [["shard", 1]]},
    "filled": {"random": [["random", 1]], "group": [["group", 1], ["random", -1]]},
}
text = {"type": "string"}
schema = {"type": "object", "properties": {"title": text, "note": text}}
account, other = make_tenant(plan="dedicated"), make_tenant()
names = ("requests_per_s", "requests_burst", "connections", "subscriptions")
Quota(tenant=account.tenant, limits=dict.fromkeys(names, 1000000)).save(using="staff")
with scoped(tenant_id=account.tenant.id):
    for name, indexes in INDEXES.items():
        options = {"schema": json.dumps(schema)} if name == "notes" else {}
        collection = Collection.objects.create(name=name, **options)
        for index, fields in indexes.items():
            Index.objects.create(collection=collection, name=index, fields=fields, state="ready")
with scoped(tenant_id=other.tenant.id):
    Collection.objects.create(name="own")
key = make_key(account.tenant, scopes=["documents:read", "documents:write"])
print(json.dumps({"key": key, "other_key": other.admin_key, "other_tenant": other.slug}))
"""
#: Limits of the app server if very many clients share one address.
_CONNECTION_SETTINGS = ("RILLBASE_CONNECTIONS_MAX", "RILLBASE_CONNECTIONS_PER_ADDRESS")


@dataclass(frozen=True, slots=True)
class Servers:
    """An installation with one app server, and two tenants.

    The first has plenty of quota and these collections: `plain`; `notes`, with a schema; `one` and
    `many`, with an index on `shard`; `filled`, with indexes on `random` and `group`. The second has
    the usual quotas and the collection `own`.
    """

    installed: Installation
    web: Web
    #: The app server and the other services of live queries, by name.
    processes: Mapping[str, psutil.Process]
    key: str
    other_key: str
    other_tenant: str


@contextmanager
def running(*, grid: str = "", connections: int = 0) -> Iterator[Servers]:
    """Start everything; without a kind of grid there are no live queries.

    The app server accepts its usual number of connections, or the requested number.
    """
    with ExitStack() as stack:
        installed = stack.enter_context(installation())
        seeded = json.loads(python(installed, _SEED))
        processes = {}
        if grid:
            processes["relay"] = stack.enter_context(service(installed, "relay", {})).process
            kind = {"RILLBASE_GRID": grid}
            processes["grid"] = stack.enter_context(service(installed, "grid", kind)).process
        settings = dict.fromkeys(_CONNECTION_SETTINGS, str(connections)) if connections else {}
        app = stack.enter_context(web(installed, "rillbase_server.asgi:application", settings))
        yield Servers(installed, app, {"web": app.process, **processes}, **seeded)
