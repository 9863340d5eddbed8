"""`/graphql`: one operation by POST, or a query by GET."""

from __future__ import annotations

from dataclasses import dataclass

from graphql import OperationType

from data_plane.http import CallHead, CallResponse, RequestBody
from data_plane.http.body import ClientGone
from foundation.api.problems import translate
from foundation.api.rendering import to_json
from foundation.asgi import App, Receive, Scope, Send
from foundation.errors import (
    ApiError,
    InvalidBody,
    InvalidOperation,
    MalformedJson,
    MethodNotAllowed,
)
from foundation.json_body import parse_json_body
from foundation.json_types import JsonValue
from rillbase_server.graphql import callers, failures, persisted_operations
from rillbase_server.graphql.assembly import Schemas
from rillbase_server.graphql.context import Context
from rillbase_server.graphql.internal_request import InternalRequests
from rillbase_server.graphql.operations import GraphqlRequest, OperationRejected, answer
from tenants import cors

PATH = "/graphql"
MAX_BODY_BYTES = 32 * 1024 * 1024
MEDIA_TYPE = "application/graphql-response+json"


@dataclass(frozen=True, slots=True)
class GraphqlHttp:
    """Handles operations and forwards all other requests."""

    app: App
    schemas: Schemas

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != PATH:
            await self.app(scope, receive, send)
            return
        scope["state"]["route"] = PATH
        head, headers = CallHead(scope), dict[str, str]()
        try:
            response = await self._answer(scope, head, receive, headers)
        except ClientGone:
            return
        except Exception as error:  # noqa: BLE001 -- every error becomes a response
            response = _refusal(head, translate(error))
        await response.send(send, headers, with_body=head.method != "HEAD")

    async def _answer(
        self, scope: Scope, head: CallHead, receive: Receive, headers: dict[str, str]
    ) -> CallResponse:
        if head.method == "OPTIONS" and "Access-Control-Request-Method" in head.headers:
            return CallResponse(204, headers=cors.preflight_headers(head))
        if head.method not in ("GET", "POST"):
            raise MethodNotAllowed(headers={"Allow": "GET, POST"})
        principal, tenant = await callers.authenticated(head)
        if tenant is not None:
            headers.update(cors.answer_headers(head, tenant))
        await callers.check_rate_limits(principal, tenant, headers)
        body = RequestBody(head, receive)
        try:
            request = GraphqlRequest.read(await _body(head, body))
        finally:
            body.release()
        context = Context(principal, tenant, head, InternalRequests(self.app, scope))
        try:
            response = await self._run(request, context, head)
        except OperationRejected as error:
            return _respond(head, to_json({"errors": error.errors}), 400)
        return _respond(head, response, 200)

    async def _run(self, request: GraphqlRequest, context: Context, head: CallHead) -> bytes:
        text_of_operation = await persisted_operations.text_of(request, context)
        texts = await self.schemas.of(None if context.tenant is None else context.tenant.id)
        prepared = await texts.prepare(text_of_operation, request.name, context.party)
        await persisted_operations.keep(request, context)
        if prepared.kind is OperationType.SUBSCRIPTION:
            raise InvalidOperation("Subscriptions require a WebSocket: graphql-transport-ws.")
        if prepared.kind is OperationType.MUTATION and head.method != "POST":
            raise MethodNotAllowed("Send mutations by POST.", headers={"Allow": "POST"})
        return await answer(prepared, request.variables, context)


async def _body(head: CallHead, body: RequestBody) -> object:
    if head.method == "POST":
        body.require("application/json")
        return parse_json_body(await body.read(MAX_BODY_BYTES))
    members: dict[str, object] = dict(head.query)
    for name in ("variables", "extensions"):
        if name in members:
            members[name] = _parse(name, str(members[name]))
    return members


def _parse(name: str, text: str) -> JsonValue:
    try:
        return parse_json_body(text.encode())
    except MalformedJson as error:
        reason = error.errors[0].detail
        raise MalformedJson(f"The parameter `{name}` is not valid JSON: {reason}.") from None


def _refusal(head: CallHead, error: ApiError) -> CallResponse:
    """Respond to an operation that did not run."""
    response = _respond(head, to_json({"errors": [failures.of(error)]}), error.status)
    response.headers.update(error.headers)
    return response


def _respond(head: CallHead, body: bytes, status: int) -> CallResponse:
    """Respond with the media type that the client accepts.

    Clients of the older type treat any status but 200 as a broken connection, so errors of an
    operation are reported only in the body. Earlier errors are reported by the status.
    """
    accepts_newer_type = MEDIA_TYPE in head.headers.get("accept", "")
    is_about_the_operation = status == InvalidBody.status
    response_status = 200 if is_about_the_operation and not accepts_newer_type else status
    return CallResponse(
        response_status,
        body,
        {},
        MEDIA_TYPE if accepts_newer_type else "application/json",
    )
