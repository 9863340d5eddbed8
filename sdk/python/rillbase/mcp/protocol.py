"""The Model Context Protocol, revision 2025-06-18: JSON-RPC messages, one per line."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from rillbase.errors import RillbaseError, ServerError
from rillbase.mcp.schemas import Schema, check_arguments
from rillbase.shapes import Document

REVISION = "2025-06-18"
#: The version of the package.
VERSION = "0.1.0"
MAX_LINE_BYTES = 1024 * 1024
#: More than the server accepts in a document or a filter. Tools encode arguments recursively.
MAX_DEPTH = 256
PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602
INSTRUCTIONS = (
    "Rillbase is a real-time document database with MongoDB's query language. Call `schema` before"
    " `query`, and `docs` for how Rillbase works."
)


@dataclass(frozen=True, slots=True)
class AssistantTool:
    """A function that the assistant may call, with a JSON Schema for each of its arguments."""

    name: str
    description: str
    arguments: Mapping[str, Schema]
    required: tuple[str, ...]
    #: Returns the result's text.
    run: Callable[[Document], Awaitable[str]]
    writes: bool = False

    def listed(self) -> Document:
        schema = {"type": "object", "properties": self.arguments, "required": self.required}
        return {
            "name": self.name,
            "description": self.description,
            "inputSchema": {**schema, "additionalProperties": False},
            "annotations": {"readOnlyHint": not self.writes, "destructiveHint": self.writes},
        }


class ProtocolError(Exception):
    """A message that breaks the protocol, with the error's number in JSON-RPC."""

    def __init__(self, number: int, message: str) -> None:
        super().__init__(message)
        self.number = number


def serve(tools: Mapping[str, AssistantTool], requests: BinaryIO, responses: BinaryIO) -> None:
    """Respond to each request until there are no more."""
    with asyncio.Runner() as runner:
        for line in _lines(requests):
            response = runner.run(_response(line, tools))
            if response is not None:
                responses.write(json.dumps({"jsonrpc": "2.0", **response}).encode() + b"\n")
                responses.flush()


def _lines(requests: BinaryIO) -> Iterator[bytes | None]:
    """Yield each line, or None for one that is too long, which is never held as a whole."""
    while line := requests.readline(MAX_LINE_BYTES):
        is_whole = line.endswith(b"\n") or len(line) < MAX_LINE_BYTES
        yield line if is_whole else None
        while not is_whole:
            rest = requests.readline(MAX_LINE_BYTES)
            is_whole = rest.endswith(b"\n") or not rest


async def _response(line: bytes | None, tools: Mapping[str, AssistantTool]) -> Document | None:
    request_id = None
    try:
        message = _message(line)
        if not {"method", "id"} <= message.keys():
            return None  # A response or a notification: this server depends on neither.
        request_id = message["id"]
        result = await _result(message["method"], message.get("params", {}), tools)
        response = {"result": result}
    except ProtocolError as error:
        response = {"error": {"code": error.number, "message": str(error)}}
    return {"id": request_id, **response}


def _message(line: bytes | None) -> Document:
    if line is None:
        raise ProtocolError(INVALID_REQUEST, f"A message has at most {MAX_LINE_BYTES} bytes.")
    try:
        message = json.loads(line)
        # Python's parser accepts what JSON does not allow: NaN, infinity and lone surrogates.
        json.dumps(message, allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise ProtocolError(PARSE_ERROR, "The message is not valid JSON.") from None
    if _is_deeper(message, MAX_DEPTH):
        raise ProtocolError(INVALID_REQUEST, f"A message is nested at most {MAX_DEPTH} deep.")
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0" or not _is_valid(message):
        raise ProtocolError(INVALID_REQUEST, "The message is not a request of JSON-RPC 2.0.")
    return message


def _is_deeper(value: object, depth: int) -> bool:
    """Return whether a value is nested deeper than this."""
    level = [value]
    for _ in range(depth):
        members = [
            item.values() if isinstance(item, dict) else item
            for item in level
            if isinstance(item, dict | list)
        ]
        if not members:
            return False
        level = [member for group in members for member in group]
    return any(isinstance(item, dict | list) for item in level)


def _is_valid(message: Document) -> bool:
    request_id = message.get("id", 0)
    has_id = isinstance(request_id, str | int) and not isinstance(request_id, bool)
    is_call = isinstance(message.get("method"), str) and isinstance(message.get("params", {}), dict)
    return has_id and (is_call or "result" in message or "error" in message)


async def _result(method: str, params: Document, tools: Mapping[str, AssistantTool]) -> Document:
    match method:
        case "initialize":
            return {
                "protocolVersion": REVISION,
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "rillbase", "version": VERSION},
                "instructions": INSTRUCTIONS,
            }
        case "ping":
            return {}
        case "tools/list":
            return {"tools": [tool.listed() for tool in tools.values()]}
        case "tools/call":
            return await _call_tool(params, tools)
        case _:
            raise ProtocolError(METHOD_NOT_FOUND, f"There is no method {method[:80]!r}.")


async def _call_tool(params: Document, tools: Mapping[str, AssistantTool]) -> Document:
    name = params.get("name")
    tool = tools.get(name) if isinstance(name, str) else None
    if tool is None:
        raise ProtocolError(INVALID_PARAMS, f"Unknown tool: {str(name)[:80]!r}.")
    try:
        arguments = check_arguments(params.get("arguments", {}), tool.arguments, tool.required)
        return _content(await tool.run(arguments), is_error=False)
    except RillbaseError as error:
        return _content(json.dumps(_problem(error), ensure_ascii=False), is_error=True)


def _content(text: str, *, is_error: bool) -> Document:
    return {"content": [{"type": "text", "text": text}], "isError": is_error}


def _problem(error: RillbaseError) -> Document:
    problem: dict[str, Any] = {"code": error.code, "detail": str(error)}
    if not isinstance(error, ServerError):
        return problem
    problem["detail"] = error.detail or error.title or str(error)
    if error.places:
        problem["errors"] = [
            {"pointer": place.pointer, "code": place.code, "detail": place.detail}
            for place in error.places
        ]
    return problem
