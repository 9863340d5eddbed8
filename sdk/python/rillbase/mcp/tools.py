"""The tools that assistants call, each with one or two calls of Rillbase's API."""

from __future__ import annotations

import json
from collections.abc import Mapping
from urllib.parse import quote

from rillbase.errors import RillbaseError
from rillbase.http import ApiRequest, Http
from rillbase.mcp.manual import search
from rillbase.mcp.protocol import AssistantTool
from rillbase.mcp.schemas import InvalidArgument, Schema
from rillbase.shapes import Document
from rillbase.writes.calls import new_key

#: Assistants hold all results in their context, so these are far smaller than the API's.
MAX_CHARACTERS, MAX_DOCUMENTS, DEFAULT_DOCUMENTS = 40_000, 100, 20
COLLECTION: Schema = {"type": "string", "pattern": "^[a-z][a-z0-9_-]{0,62}$"}
FILTER: Schema = {"type": "object", "description": 'As in MongoDB: {"rank": {"$lt": 10}}'}
SORT: Schema = {
    "type": "array",
    "items": {"type": "array", "items": {"type": ["string", "integer"]}},
    "description": 'Fields and directions: [["rank", 1]]',
}
LIMIT: Schema = {"type": "integer", "minimum": 1, "maximum": MAX_DOCUMENTS}
QUERY: Mapping[str, Schema] = {"collection": COLLECTION, "filter": FILTER, "sort": SORT}


class DataTools:
    """Runs the tools with a caller's credentials, which decide what they return."""

    def __init__(self, http: Http) -> None:
        self._http = http
        self._manual = ""

    async def query(self, arguments: Document) -> str:
        body = {"limit": DEFAULT_DOCUMENTS, **arguments}
        path = f"/v1/collections/{body.pop('collection')}/query"
        return bounded(await self._json("POST", path, body))

    async def schema(self, arguments: Document) -> str:
        name = arguments.get("collection")
        path = await self._tenant("collections")
        return bounded(await self._json("GET", path if name is None else f"{path}/{name}"))

    async def explain(self, arguments: Document) -> str:
        body = dict(arguments)
        match "collection" in body, "subscription" in body, "document" in body:
            case True, False, False:
                path = f"/v1/collections/{body.pop('collection')}/explain"
                return bounded(await self._json("POST", path, body))
            case True, False, True:
                return bounded(await self._json("POST", await self._tenant("why"), body))
            case False, True, True if body.keys() == {"subscription", "document"}:
                subscription = quote(body["subscription"], safe="")
                path = await self._tenant(f"subscriptions/{subscription}/why")
                document = quote(f"~{json.dumps(body['document'])}", safe="")
                return bounded(await self._json("GET", f"{path}?document={document}"))
        raise InvalidArgument("Give a `collection`, or a `subscription` and a `document` alone.")

    async def docs(self, arguments: Document) -> str:
        if not self._manual:
            request = ApiRequest("GET", "/docs/llms-full.txt", accept="text/plain")
            manual = (await self._http.call(request)).decode(errors="replace")
            if not manual.startswith("<page "):
                raise RillbaseError("not_found", "The server does not have its documentation.")
            self._manual = manual
        return search(self._manual, arguments["search"])[:MAX_CHARACTERS]

    async def write(self, arguments: Document) -> str:
        path = f"/v1/collections/{arguments['collection']}/documents:bulk"
        return bounded(await self._json("POST", path, {"operations": arguments["operations"]}))

    async def _tenant(self, rest: str) -> str:
        slug = (await self._json("GET", "/v1/whoami"))["tenant"]
        return f"/api/v1/tenants/{quote(slug, safe='')}/{rest}"

    async def _json(self, method: str, path: str, body: Document | None = None) -> Document:
        """Return a response as it was sent: the client's own reader converts Extended JSON."""
        text = None if body is None else json.dumps(body)
        key = new_key() if path.endswith("documents:bulk") else None
        json_type = "application/json"
        request = ApiRequest(method, path, text, idempotency_key=key, accept=json_type)
        try:
            response: Document = json.loads(await self._http.call(request))
        except ValueError:
            raise RillbaseError("invalid_response", "The response is not JSON.") from None
        return response


def bounded(result: Document) -> str:
    """Return a result as text, without the last items if it is too long."""
    text = json.dumps(result, ensure_ascii=False)
    items = list(result.get("items", ()))
    omitted = 0
    while len(text) > MAX_CHARACTERS and items:
        # Halving serializes the items few times, however many they are.
        omitted += len(items) - len(items) // 2
        del items[len(items) // 2 :]
        # The cursor would skip the omitted items.
        rest = {name: value for name, value in result.items() if name != "next_cursor"}
        text = json.dumps({**rest, "items": items, "omitted": omitted}, ensure_ascii=False)
    if len(text) > MAX_CHARACTERS:
        raise RillbaseError("result_too_large", "The result is too long. Ask for less.")
    return text


def tools(data: DataTools, *, allow_writes: bool) -> Mapping[str, AssistantTool]:
    """Return the tools by name."""
    offered = [_query(data), _schema(data), _explain(data), _docs(data)]
    if allow_writes:
        offered.append(_write(data))
    return {tool.name: tool for tool in offered}


def _query(data: DataTools) -> AssistantTool:
    return AssistantTool(
        "query",
        "Return documents of a collection. `next_cursor` continues a result; a projection such as"
        ' {"title": 1} shortens it.',
        {
            **QUERY,
            "limit": {**LIMIT, "default": DEFAULT_DOCUMENTS},
            "projection": {"type": "object"},
            "cursor": {"type": "string"},
        },
        ("collection",),
        data.query,
    )


def _schema(data: DataTools) -> AssistantTool:
    return AssistantTool(
        "schema",
        "Return all collections, or one, with JSON Schemas, access rules and indexes.",
        {"collection": COLLECTION},
        (),
        data.schema,
    )


def _explain(data: DataTools) -> AssistantTool:
    return AssistantTool(
        "explain",
        "With a collection: return how the query is executed. With a document, too: why a"
        " subscriber to the query gets, or does not get, the document's last change. With a"
        " subscription's id and a document: why that client got it or did not.",
        {
            **QUERY,
            "limit": LIMIT,
            "document": {"description": "The `_id` of a document, as Extended JSON."},
            "subscription": {"type": "string", "minLength": 1},
        },
        (),
        data.explain,
    )


def _docs(data: DataTools) -> AssistantTool:
    return AssistantTool(
        "docs",
        "Search Rillbase's documentation for words.",
        {"search": {"type": "string", "minLength": 1, "maxLength": 200}},
        ("search",),
        data.docs,
    )


def _write(data: DataTools) -> AssistantTool:
    operations = {"type": "array", "minItems": 1, "maxItems": MAX_DOCUMENTS}
    return AssistantTool(
        "write",
        "Apply operations to a collection; all of them succeed or none. Each is one of"
        ' {"insert": {…}}, {"replace": {"id": …, "document": {…}}},'
        ' {"update": {"id": …, "update": {"$set": {…}}}} and {"delete": {"id": …}}.',
        {"collection": COLLECTION, "operations": {**operations, "items": {"type": "object"}}},
        ("collection", "operations"),
        data.write,
        writes=True,
    )
