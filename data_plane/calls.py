"""How a call of the data plane is authenticated and rate-limited, on the event loop.

The steps are those of `tenants.api.base.DataView`: authentication, CORS, rate limits. Credentials
that were looked up within the last second are taken from a cache; otherwise a thread queries
PostgreSQL.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeVar

from django.db import connections

from data_plane.http import (
    CallHead,
    CallResponse,
    HttpOperation,
    RequestBody,
    Router,
    problem_answer,
)
from data_plane.http.body import ClientGone
from data_plane.http.router import RouteMatch
from foundation import contention, request_context
from foundation.api.problems import translate
from foundation.asgi import App, Receive, Scope, Send
from foundation.errors import ApiError, Unauthenticated
from foundation.ids import text_of
from foundation.limits import limiter
from rillbase_native import Value
from tenants import cors, error_log, usage
from tenants.credentials import act_as
from tenants.credentials.authenticate import authenticate_data_plane
from tenants.credentials.cache import NotCached, cached_only
from tenants.credentials.facts import TenantFacts
from tenants.principals import Principal
from tenants.quotas import refusal_limits, request_limits

T = TypeVar("T")

LOOK_UPS_AT_ONCE = 16


@dataclass(slots=True)
class Call:
    """One authenticated call: its caller, tenant and request."""

    head: CallHead
    body: RequestBody
    principal: Principal
    tenant: TenantFacts
    parameters: dict[str, str]
    #: Headers for the answer that were decided on the way in.
    headers: dict[str, str] = field(default_factory=dict)
    #: The body, if it came as a part of something that has been parsed.
    document: Value | None = None

    def require_collection_scope(self, scope: str, collection: str) -> None:
        """Raise unless the credentials have `scope` and may be used for this collection."""
        self.principal.require_scope(scope)
        self.principal.require_collection(collection)


class DataPlane:
    """Handles the paths of its operations and passes everything else on."""

    def __init__(self, app: App, operations: Iterable[HttpOperation[Call]]) -> None:
        self._app = app
        self.router = Router(operations)
        self._roots = frozenset(operation.segments[:2] for operation in self.router.operations)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not self._is_ours(scope["path"]):
            await self._app(scope, receive, send)
            return
        head = CallHead(scope)
        headers: dict[str, str] = {}
        try:
            answer = await self._answer(scope, head, receive, headers)
        except ClientGone:
            return
        except Exception as error:  # noqa: BLE001 -- every error becomes a problem document
            answer = self.problem(self._log_refusal(translate(error), scope, head), head)
        await answer.answer(scope, receive, send, headers)

    def _is_ours(self, path: str) -> bool:
        parts = path.split("/", 3)
        return tuple(parts[1:3]) in self._roots

    async def _answer(
        self, scope: Scope, head: CallHead, receive: Receive, headers: dict[str, str]
    ) -> CallResponse:
        if head.method == "OPTIONS" and "Access-Control-Request-Method" in head.headers:
            return CallResponse(204, headers=cors.preflight_headers(head))
        match = self.find(scope, head)
        principal, tenant = await self.authenticated(head)
        headers.update(cors.answer_headers(head, tenant))
        await check_rate_limits(principal, tenant, headers)
        body = RequestBody(head, receive)
        call = Call(head, body, principal, tenant, match.parameters, headers)
        try:
            return await match.operation.handler(call)
        finally:
            body.release()

    def find(self, scope: Scope, head: CallHead) -> RouteMatch[Call]:
        """Return the operation of a request."""
        match = self.router.find(head.method, head.segments)
        scope["state"]["route"] = match.operation.path
        scope["state"]["parameters"] = match.parameters
        return match

    async def authenticated(self, head: CallHead) -> tuple[Principal, TenantFacts]:
        """Return the caller and its tenant."""
        return await authenticated(head)

    def problem(self, error: ApiError, head: CallHead) -> CallResponse:
        """Respond with an error."""
        return problem_answer(error)

    def _log_refusal(self, error: ApiError, scope: Scope, head: CallHead) -> ApiError:
        """Write an error to the error log of the caller's tenant, if that is known."""
        state = scope["state"]
        place = f"{head.method} {state.get('route', '')}"
        return error_log.note_refusal(error, place, state.get("parameters"))


async def authenticated(head: CallHead) -> tuple[Principal, TenantFacts]:
    """Return the caller and its tenant."""
    principal, tenant = await counted(lambda: authenticate_data_plane(head))
    if act_as.is_requested(head):
        principal = await acting(principal, head)
    note_caller(principal, tenant)
    return principal, tenant


def note_caller(principal: Principal, tenant: TenantFacts) -> None:
    """Name the caller and the tenant in logs of the request."""
    request_context.authenticated(principal.actor)
    request_context.tenant_id.set(text_of(tenant.id))


async def acting(principal: Principal, head: CallHead) -> Principal:
    """Return the end user on whose behalf an admin makes the call."""
    return await looked_up(lambda: act_as.as_end_user(principal, head))


async def counted(look_up: Callable[[], T]) -> T:
    """Look up credentials. Rejected ones count against the client's address."""
    try:
        return await _look_up(look_up)
    except ApiError as error:
        if error.status == Unauthenticated.status:
            decision = await limiter().acheck(refusal_limits())
            if not decision.allowed:
                raise decision.refusal() from None
        raise


async def _look_up(look_up: Callable[[], T]) -> T:
    try:
        with cached_only():
            return look_up()
    except NotCached:
        return await looked_up(look_up)


async def looked_up(look_up: Callable[[], T]) -> T:
    """Look up credentials in a thread, in the caller's context. It is not one of asyncio's few
    threads, because some lookups wait for tenants' servers.
    """
    within = copy_context().run
    return await asyncio.get_running_loop().run_in_executor(
        _threads(), within, _with_connection, look_up
    )


@lru_cache(maxsize=1)
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(LOOK_UPS_AT_ONCE, thread_name_prefix="authenticate")


def _with_connection(look_up: Callable[[], T]) -> T:
    try:
        return look_up()
    finally:
        for alias in ("auth", "default"):
            connections[alias].close()


async def check_rate_limits(
    principal: Principal, tenant: TenantFacts, headers: dict[str, str] | None, *, calls: int = 1
) -> None:
    """Count calls, or raise `RateLimited`. Adds the rate limit headers to `headers`, if given."""
    contention.tenants.record(tenant.id)
    decision = await limiter().acheck(
        request_limits(text_of(tenant.id), text_of(principal.credential_id), tenant.limits, calls)
    )
    if headers is not None:
        headers.update(decision.headers())
    if not decision.allowed:
        raise decision.refusal()
    usage.count(tenant.id, "requests", calls)
