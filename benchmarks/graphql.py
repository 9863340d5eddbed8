"""GraphQL beside REST: the same reads by the same server, in the same run.

    python -m benchmarks.graphql [--quick]

One web process, rounds of both in turn. What counts is the server's CPU time for each answer:
`overhead` is GraphQL's, divided by REST's. The first operation of each text is read and checked;
later ones are known, as they are in production.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass

import requests

from benchmarks.support import load
from benchmarks.support.installation import Web, installation, python, web
from benchmarks.support.report import Report, median, percentile

_MAKE = """
import json
import django; django.setup()
from documents.models import Collection
from foundation.scope import scoped
from tenants.models import Quota
from tests.make import make_key, make_tenant
made = make_tenant(plan="dedicated")
plenty = {"requests_per_s": 1000000, "requests_burst": 1000000}
Quota(tenant=made.tenant, limits=plenty).save(using="staff")
text = {"type": "string"}
schema = {"type": "object", "properties": {"title": text, "note": text}}
with scoped(tenant_id=made.tenant.id):
    Collection.objects.create(name="notes", schema=json.dumps(schema))
key = make_key(made.tenant, scopes=["documents:read", "documents:write"])
print(json.dumps({"key": key}))
"""

CONNECTIONS = 8
DOCUMENTS = 100
_WANT = "<= 1.6"


@dataclass(frozen=True, slots=True)
class Read:
    """The same question in both languages."""

    name: str
    what: str
    rest: load.Target
    graphql: load.Target


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="finish in about a minute")
    given = parser.parse_args()
    seconds, rounds = (2.0, 3) if given.quick else (5.0, 7)
    report = Report("graphql", {"seconds": seconds, "rounds": rounds, "connections": CONNECTIONS})
    with installation() as place:
        made = json.loads(python(place, _MAKE))
        with web(place, "rillbase_server.asgi:application", {}) as server:
            caller = _Caller(server.port, made["key"])
            _fill(caller)
            for read in (_one(caller), _page(caller), _typed(caller)):
                _measure(report, server, read, seconds, rounds)
    report.finish()


@dataclass(frozen=True, slots=True)
class _Caller:
    port: int
    key: str

    def target(
        self, path: str, body: object = None, *, status: int = 200, expect: str = ""
    ) -> load.Target:
        return load.Target(
            "127.0.0.1",
            self.port,
            path,
            (("Authorization", f"Bearer {self.key}"),),
            method="GET" if body is None else "POST",
            body=b"" if body is None else json.dumps(body).encode(),
            expect=expect,
        )

    def operation(self, text: str, expect: str) -> load.Target:
        return self.target("/graphql", {"query": text}, expect=expect)


def _fill(caller: _Caller) -> None:
    operations = [
        {"insert": {"_id": f"n{n}", "title": f"Note {n}", "note": "x" * 200}}
        for n in range(DOCUMENTS)
    ]
    answer = requests.post(
        f"http://127.0.0.1:{caller.port}/v1/collections/notes/documents:bulk",
        json={"operations": operations},
        headers={"Authorization": f"Bearer {caller.key}"},
        timeout=30,
    )
    answer.raise_for_status()


def _one(caller: _Caller) -> Read:
    return Read(
        "one",
        "one document by its key",
        caller.target("/v1/collections/notes/documents/n7", expect="Note 7"),
        caller.operation(
            '{ document(collection: "notes", key: "n7") { key version document } }', "Note 7"
        ),
    )


def _page(caller: _Caller) -> Read:
    return Read(
        "page",
        "50 documents of 250 bytes as JSON",
        caller.target("/v1/collections/notes/query", {"limit": 50}, expect="Note 1"),
        caller.operation(
            '{ documents(collection: "notes", first: 50) { nodes { key version document } '
            "pageInfo { hasNextPage endCursor } } }",
            "Note 1",
        ),
    )


def _typed(caller: _Caller) -> Read:
    return Read(
        "typed_page",
        "the same by the collection's own fields",
        caller.target("/v1/collections/notes/query", {"limit": 50}, expect="Note 1"),
        caller.operation(
            "{ notes(first: 50) { nodes { key version document { title note } } "
            "pageInfo { hasNextPage endCursor } } }",
            "Note 1",
        ),
    )


def _measure(report: Report, server: Web, read: Read, seconds: float, rounds: int) -> None:
    ratios: list[float] = []
    for _ in range(rounds):
        rest, graphql = (_cpu_ms(server, target, seconds) for target in (read.rest, read.graphql))
        ratios.append(graphql / rest)
    outcome = load.run(read.graphql, connections=CONNECTIONS, seconds=seconds)
    report.add(
        f"{read.name}_overhead", median(ratios), "", f"CPU of GraphQL / REST: {read.what}", _WANT
    )
    report.add(f"{read.name}_rate", outcome.rate_per_s, "1/s", "answers by GraphQL")
    p99 = percentile(outcome.latencies_ms, 0.99)
    report.add(f"{read.name}_p99", p99, "ms", f"with {CONNECTIONS} connections")


def _cpu_ms(server: Web, target: load.Target, seconds: float) -> float:
    """Return the server's CPU time for one answer."""
    begin = server.cpu_s()
    outcome = load.run(target, connections=CONNECTIONS, seconds=seconds)
    return 1000 * (server.cpu_s() - begin) / outcome.requests


if __name__ == "__main__":
    main()
