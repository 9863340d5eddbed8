"""POST events: one, several at once, or a stream of lines.

The events of one body are added in one transaction, over all rollups, or none of them is. Lines are
added chunk by chunk while they arrive; a rejected line is listed in the response, and the others
are added.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from aggregates import refusals
from aggregates.api.aggregate_access import aggregate_of
from aggregates.api.event_names import EventNamer
from aggregates.facts import WRITE, AggregateFacts
from data_plane import idempotency
from data_plane.calls import Call
from data_plane.http import CallResponse, json_answer
from data_plane.lines import decoded, lines
from data_plane.request_reader import parameters, read_body, refusing
from foundation.environment import environment
from foundation.errors import ApiError, Conflict, FieldProblem, InvalidBody
from foundation.json_types import JsonObject, JsonValue
from foundation.refusals import as_api_error
from rillbase_native import JsonError, QueryError, Value
from storage_engine.node.wire import CommandRejected, Reply
from tenants import usage

NDJSON = "application/x-ndjson"
#: Events per transaction, and bytes per event.
MAX_EVENTS, MAX_EVENT_BYTES = 4_000, 64 * 1024
#: A longer line is rejected unread: with every character escaped, an event needs no more.
MAX_LINE_BYTES = 6 * MAX_EVENT_BYTES
#: A stream is added in chunks of this many lines, and ends after this many rejected lines.
CHUNK, MAX_REFUSED = 1_000, 100


async def add(call: Call) -> CallResponse:
    """POST events."""
    parameters(call)
    aggregate = await aggregate_of(call, WRITE)
    if aggregate.is_view:
        raise Conflict("Events cannot be added to a view, which follows its collection.")
    if call.body.media_type == NDJSON:
        return await _stream(call, aggregate)
    text = await read_body(call, "application/json", NDJSON)
    claim = idempotency.claim_of(call, text)
    if (repeated := await idempotency.recorded_response(claim)) is not None:
        return repeated
    values, prefixes = _events(text)
    names = EventNamer(call, aggregate.time_field)
    events = [
        names.named(_require_object(event, at), n)
        for n, (event, at) in _with_paths(values, prefixes)
    ]
    try:
        applications = await _add(aggregate, events, once_only=not names.all_named)
    except CommandRejected as error:
        number = refusals.refused_event(error)
        if number is None or number >= len(prefixes):
            raise refusals.as_api_error(error) from None
        raise refusals.of_event(error, prefixes[number]) from None
    applied = sum(applications)
    answer = json_answer(
        {"applied": applied, "repeated": len(applications) - applied},
        status=201 if applied else 200,
    )
    return await idempotency.settle(call.tenant.id, claim, answer, None)


def _events(text: bytes) -> tuple[list[Value], list[str]]:
    """Return a body's events, each with its JSON pointer."""
    with refusing():
        # A list of tiny values takes many times its text before they are counted.
        value = Value.parse_document(text)
    if value.kind != "array":
        return [value], [""]
    events = value.items()
    if not 0 < len(events) <= MAX_EVENTS:
        raise InvalidBody(
            f"A call adds 1 to {MAX_EVENTS} events; a stream of lines may have any number."
        )
    return events, [f"/{number}" for number in range(len(events))]


def _with_paths(events: Sequence[Value], prefixes: Sequence[str]) -> enumerate[tuple[Value, str]]:
    return enumerate(zip(events, prefixes, strict=True))


def _require_object(event: Value, pointer: str) -> Value:
    if event.kind != "object":
        raise InvalidBody(errors=[FieldProblem(pointer, "invalid", "An event must be an object.")])
    return event


async def _add(aggregate: AggregateFacts, events: Sequence[bytes], *, once_only: bool) -> list[int]:
    """Add events in one transaction. Return for each 1, or 0 if it was known."""
    for number, event in enumerate(events):
        if len(event) > MAX_EVENT_BYTES:
            raise _too_large(number)
    applications = _numbers(await aggregate.call("RB.AGG.ADD", *events, once=once_only))
    usage.count(aggregate.tenant_id, "aggregate_events", sum(applications))
    return applications


def _too_large(number: int) -> CommandRejected:
    return CommandRejected(
        f"BADEVENT {number} - An event may have at most {MAX_EVENT_BYTES} bytes."
    )


def _numbers(reply: Reply) -> list[int]:
    return [n for n in reply if isinstance(n, int)] if isinstance(reply, list) else []


@dataclass(slots=True)
class _Progress:
    """The progress of a stream of lines."""

    applied: int = 0
    repeated: int = 0
    lines: int = 0
    refused: list[JsonValue] = field(default_factory=list)

    @property
    def is_over(self) -> bool:
        return len(self.refused) >= MAX_REFUSED

    def refuse(self, line: int, error: ApiError) -> None:
        self.refused.append({"line": line, "error": error.problem()})

    def describe(self) -> JsonObject:
        return {
            "applied": self.applied,
            "repeated": self.repeated,
            "lines": self.lines,
            "refused": self.refused,
            "complete": not self.is_over,
        }


async def _stream(call: Call, aggregate: AggregateFacts) -> CallResponse:
    """Add lines while they arrive."""
    encoding = call.head.headers.get("Content-Encoding", "").strip().lower()
    limit = environment().rillbase_import_max_bytes
    names, progress = EventNamer(call, aggregate.time_field), _Progress()
    chunk: list[tuple[int, bytes]] = []
    async with aclosing(lines(decoded(call.body.parts(), encoding, limit))) as arriving:
        async for line in arriving:
            progress.lines += 1
            if line.strip():
                _read_line(line, names, progress, chunk)
            if len(chunk) >= CHUNK:
                await _add_lines(aggregate, chunk, names, progress)
                chunk = []
            if progress.is_over:
                break
    if chunk and not progress.is_over:
        await _add_lines(aggregate, chunk, names, progress)
    return json_answer(progress.describe())


def _read_line(
    line: bytes, names: EventNamer, progress: _Progress, chunk: list[tuple[int, bytes]]
) -> None:
    if len(line) > MAX_LINE_BYTES:
        progress.refuse(progress.lines, refusals.of_event(_too_large(0), ""))
        return
    try:
        event = _require_object(Value.parse(line), "")
        named = names.named(event, progress.lines)
        if len(named) > MAX_EVENT_BYTES:
            # A chunk is bounded by its number of events, so each of them must be small.
            progress.refuse(progress.lines, refusals.of_event(_too_large(0), ""))
        else:
            chunk.append((progress.lines, named))
    except QueryError as error:
        progress.refuse(progress.lines, as_api_error(error))
    except JsonError as error:
        problem = FieldProblem(error.pointer, error.code, str(error))
        progress.refuse(progress.lines, InvalidBody(str(error), errors=[problem]))
    except InvalidBody as error:
        progress.refuse(progress.lines, error)


async def _add_lines(
    aggregate: AggregateFacts,
    chunk: Sequence[tuple[int, bytes]],
    names: EventNamer,
    progress: _Progress,
) -> None:
    """Add a chunk without the lines that the node rejects."""
    remaining = list(chunk)
    while remaining and not progress.is_over:
        try:
            applications = await _add(
                aggregate, [event for _, event in remaining], once_only=not names.all_named
            )
        except CommandRejected as error:
            number = refusals.refused_event(error)
            if number is None or number >= len(remaining):
                raise refusals.as_api_error(error) from None
            line, _ = remaining.pop(number)
            progress.refuse(line, refusals.of_event(error, ""))
        else:
            progress.applied += sum(applications)
            progress.repeated += len(applications) - sum(applications)
            return
