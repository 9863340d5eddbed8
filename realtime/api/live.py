"""GET /v1/collections/{c}/live, and the streams that an EventSource opens with a ticket."""

from __future__ import annotations

from connections.callers import ConnectionCaller, Handshake, by_ticket
from connections.connection_registry import ConnectionRegistry
from connections.event_stream_consumer import EventStreams
from connections.subscriptions import SubscriptionKinds
from data_plane.calls import Call, check_rate_limits
from data_plane.http import CallHead, CallResponse, RequestBody, problem_answer
from data_plane.request_reader import (
    EJSON_PARAMETER,
    as_object,
    parameters,
    streams_canonical,
)
from documents.api.queries import from_url
from documents.api.requests import (
    READ,
    collection_name,
)
from foundation.api.problems import translate
from foundation.api.rendering import to_json
from foundation.asgi import App, Receive, Scope, Send
from foundation.errors import InvalidBody, InvalidCredentials, MethodNotAllowed
from realtime.api.tickets import path_of
from realtime.registration.subscribe_request import MEMBERS
from rillbase_native import Value
from storage_engine.topics.live.api import TopicStreams
from tenants import cors, error_log
from tenants.credentials.credential_reference import reference_of

LAST_EVENT_ID = "Last-Event-ID"
TICKET = b"ticket="
ROUTE = "/v1/collections/{collection}/live"


class LiveQueries:
    """Responds to live queries."""

    def __init__(self, kinds: SubscriptionKinds, registry: ConnectionRegistry) -> None:
        self._kinds = kinds
        self._streams = EventStreams(registry)

    async def by_headers(self, call: Call) -> CallResponse:
        """Respond to an authenticated caller."""
        name = collection_name(call, READ)
        members = (member for member in MEMBERS if member != "collection")
        query = dict(parameters(call, *members, EJSON_PARAMETER))
        form = streams_canonical(call, query)
        message = _message(name, query, call.head)
        caller = ConnectionCaller(
            call.principal, call.tenant, reference_of(call.principal, call.head)
        )
        return self._streams.answer(call, caller, self._kinds.of(message), message, canonical=form)

    async def by_ticket(self, caller: ConnectionCaller, call: Call) -> CallResponse:
        """Respond to the holder of a ticket, whose query replaces the path's parameters."""
        query = {name: text for name, text in call.parameters.items() if name != "collection"}
        form = streams_canonical(call, query)
        message = _message(collection_name(call, READ), query, call.head)
        return self._streams.answer(call, caller, self._kinds.of(message), message, canonical=form)


def _message(collection: str, parameters: dict[str, str], head: CallHead) -> Value:
    """Return the `subscribe` message that corresponds to a URL."""
    options = {name: parameters.pop(name) for name in ("options",) if name in parameters}
    resume = head.headers.get(LAST_EVENT_ID) or parameters.pop("resume", None)
    parameters.pop("resume", None)
    query = from_url(parameters)
    parts = [b'"collection":' + to_json(collection)]
    parts += [
        to_json(name) + b":" + value.ejson(canonical=True)
        for name in query.names()
        if (value := query.get(name)) is not None
    ]
    if resume:
        parts.append(b'"resume":' + to_json(resume))
    for name, text in options.items():
        parts.append(to_json(name) + b":" + text.encode())
    return as_object(b"{" + b",".join(parts) + b"}", MEMBERS)


class TicketedStreams:
    """Handles requests with an EventSource's ticket, and passes everything else on."""

    def __init__(self, app: App, queries: LiveQueries, topics: TopicStreams) -> None:
        self._app = app
        self._queries = queries
        self._topics = topics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not _has_ticket(scope):
            await self._app(scope, receive, send)
            return
        scope["state"]["route"] = ROUTE
        headers: dict[str, str] = {}
        try:
            answer = await self._answer(scope, receive, headers)
        except Exception as raised:  # noqa: BLE001 -- every error becomes a problem document
            error = error_log.note_refusal(translate(raised), f"GET {ROUTE}")
            answer = problem_answer(error)
        await answer.answer(scope, receive, send, headers)

    async def _answer(
        self, scope: Scope, receive: Receive, headers: dict[str, str]
    ) -> CallResponse:
        """Respond to an EventSource, which cannot send headers, and record the response headers
        for its page.
        """
        if scope["method"] != "GET":
            raise MethodNotAllowed(headers={"Allow": "GET"})
        handshake = Handshake.of(scope)
        head = handshake.head
        if set(head.query) != {"ticket"}:
            raise InvalidBody(
                "A ticket already contains its whole query, so it must be the only parameter."
            )
        caller, ticket = await by_ticket(handshake, head.query["ticket"])
        if ticket.query is None or scope["path"] != path_of(ticket.query):
            raise InvalidCredentials("The ticket is for a different path.")
        query = {name: str(value) for name, value in ticket.query.items()}
        headers.update(cors.answer_headers(head, caller.tenant))
        await check_rate_limits(caller.principal, caller.tenant, headers)
        call = Call(head, RequestBody(head, receive), caller.principal, caller.tenant, query)
        if "topic" in query:
            return await self._topics.by_ticket(caller, call)
        return await self._queries.by_ticket(caller, call)


def _has_ticket(scope: Scope) -> bool:
    if scope["type"] != "http" or not scope["path"].endswith("/live"):
        return False
    return any(part.startswith(TICKET) for part in scope["query_string"].split(b"&"))
