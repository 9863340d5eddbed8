"""`/healthz`, `/readyz` and `/metrics`: answered before Django, for probes and scrapers.

They need no tenant, no credentials and no accepted Host, since probes call pods by address. Only
`/metrics` requires RILLBASE_METRICS_TOKEN if it is set; in production, `/metrics` does not exist
without it. `/healthz` depends on nothing. `/readyz` checks each dependency with a short timeout:
without the database or its migrations the process is not ready; without Valkey or the storage node
it is ready but `degraded`, since the API keeps working. A server that is stopping is not ready.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from foundation import metrics, write_stop
from foundation.asgi import App, Receive, Scope, Send
from foundation.environment import Environment
from foundation.errors import ApiError, NotFound, Unauthenticated
from foundation.request_context import request_id
from rillbase_server import dependencies
from rillbase_server.drain import DRAIN, Drain
from rillbase_server.version import VERSION

CHECK_TIMEOUT_S = 2.0

State = Literal["up", "down"]


@dataclass(frozen=True, slots=True)
class Dependency:
    """A service that the server uses. Without a required one, the server is not ready."""

    name: str
    check: Callable[[], None]
    required: bool
    #: Figures next to the state. They are public, so they must not name tenants.
    figures: Callable[[], Mapping[str, object]] = dict


class MetricsAccess:
    """Decides who may read metrics and the state of a process."""

    def __init__(self, environment: Environment) -> None:
        self._token = environment.rillbase_metrics_token.get_secret_value()
        self._is_open = environment.rillbase_env != "production"

    def check(self, scope: Scope) -> None:
        """Raise `NotFound` or `Unauthenticated` unless the caller may read them."""
        if not self._token and not self._is_open:
            raise NotFound("In production, this requires RILLBASE_METRICS_TOKEN.")
        credentials = dict(scope["headers"]).get(b"authorization", b"")
        expected = b"Bearer " + self._token.encode()
        if self._token and not hmac.compare_digest(credentials, expected):
            raise Unauthenticated(
                "Send RILLBASE_METRICS_TOKEN as a bearer token.",
                headers={"WWW-Authenticate": "Bearer"},
            )


class HealthEndpoints:
    """Answers its own paths and forwards all other requests."""

    def __init__(
        self,
        app: App,
        environment: Environment,
        more: Sequence[Dependency] = (),
        drain: Drain = DRAIN,
        database_alias: str = "default",
    ) -> None:
        self._app = app
        self._drain = drain
        self._access = MetricsAccess(environment)
        valkeys = {
            "limits": environment.limits,
            "broker": environment.broker,
            "events": environment.events,
        }
        database = dependencies.DatabaseProbe(database_alias)
        self._measured = [dependencies.QueueProbe(environment.broker).measure]
        if environment.rillbase_clusters != "off":
            self._measured.append(dependencies.ClusterProbe().measure)
        self._dependencies = (
            Dependency("database", database.ping, required=True),
            Dependency("migrations", database.migrated, required=True),
            *(
                Dependency(name, dependencies.ValkeyProbe(url).ping, required=False)
                for name, url in valkeys.items()
            ),
            *_disk(environment),
            *(
                Dependency("storage", dependencies.StorageProbe(url).ping, required=False)
                for url in [environment.storage_url]
                if url
            ),
            *more,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"] if scope["type"] == "http" else ""
        if path == "/healthz":
            await _answer(scope, send, "healthz", 200, {"status": "alive"})
        elif path == "/readyz":
            status, body = await self._readiness()
            await _answer(scope, send, "readyz", status, body)
        elif path == "/metrics":
            await self._metrics(scope, send)
        else:
            await self._app(scope, receive, send)

    async def _readiness(self) -> tuple[int, dict[str, object]]:
        results = await asyncio.gather(*(_examine(d) for d in self._dependencies))
        report = {d.name: result for d, result in zip(self._dependencies, results, strict=True)}
        down = [d for d in self._dependencies if report[d.name]["state"] != "up"]
        status, code = ("degraded" if down else "ready"), 200
        if any(d.required for d in down):
            status, code = "unavailable", 503
        elif self._drain.has_begun:
            status, code = "draining", 503
        return code, {"status": status, "version": VERSION, "dependencies": report}

    async def _metrics(self, scope: Scope, send: Send) -> None:
        try:
            self._access.check(scope)
        except ApiError as error:
            await refuse(scope, send, "metrics", error)
            return
        metrics.POOLS.sample(force=True)
        await asyncio.gather(
            *(dependencies.run(measure, CHECK_TIMEOUT_S) for measure in self._measured)
        )
        media_type = (b"content-type", metrics.CONTENT_TYPE.encode())
        await _send(scope, send, "metrics", 200, metrics.render(), media_type)


def _disk(environment: Environment) -> Sequence[Dependency]:
    """Return the data directory's disk, if a launcher monitors it."""
    if not (environment.rillbase_data_dir / write_stop.MARK).parent.is_dir():
        return ()
    return (Dependency("disk", write_stop.check, required=False),)


async def _examine(dependency: Dependency) -> Mapping[str, object]:
    """Check one dependency. Details of a failure are only logged."""
    begin = time.perf_counter()
    error = await dependencies.run(dependency.check, CHECK_TIMEOUT_S)
    latency_ms = round((time.perf_counter() - begin) * 1000, 2)
    state: State = "up" if error is None else "down"
    result: dict[str, object] = {"state": state, "latency_ms": latency_ms}
    if error is not None:
        result["error"] = type(error).__name__
    return result | dict(dependency.figures())


async def _answer(
    scope: Scope, send: Send, route: str, status: int, body: Mapping[str, object]
) -> None:
    media_type = (b"content-type", b"application/json")
    await _send(scope, send, route, status, json.dumps(body).encode(), media_type)


async def refuse(scope: Scope, send: Send, route: str, error: ApiError) -> None:
    """Respond with an error."""
    body = json.dumps(error.problem(request_id.get())).encode()
    headers = [(name.lower().encode(), value.encode()) for name, value in error.headers.items()]
    media_type = (b"content-type", b"application/problem+json")
    await _send(scope, send, route, error.status, body, media_type, *headers)


async def _send(
    scope: Scope, send: Send, route: str, status: int, body: bytes, *headers: tuple[bytes, bytes]
) -> None:
    scope.setdefault("state", {})["route"] = route
    common = [
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": [*headers, *common]})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})
