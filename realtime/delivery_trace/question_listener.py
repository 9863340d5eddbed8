"""The side of the process that has the subscriptions: it waits for questions and answers them."""

from __future__ import annotations

import asyncio
import logging
from uuid import UUID

import psycopg
from redis.exceptions import RedisError

from connections.connection_registry import ConnectionRegistry
from foundation import event_server
from foundation.api.problems import translate
from foundation.api.rendering import to_json
from foundation.environment import environment
from foundation.errors import ApiError, NotFound, NotTraceable, Unavailable
from foundation.json_types import JsonObject
from foundation.valkey_wire import ValkeyWire
from realtime.delivery_trace import evidence, story, subjects
from realtime.delivery_trace.evidence import Subject
from realtime.delivery_trace.exchange import LIFETIME_S, answers, answers_here, questions
from realtime.delivery_trace.question import Hypothesis, TraceQuestion
from realtime.hub.query_subscriptions import QuerySubscription
from realtime.registration import subscribe_request
from rillbase_native import Value

log = logging.getLogger(__name__)

WAIT_S = 5
RETRY_S = 0.5
#: Maximum number of concurrent questions: events must not wait for them.
AT_ONCE = 4
CONNECT_TIMEOUT_S = 1.0


class QuestionListener:
    """Answers the questions for one process."""

    def __init__(self, process: str, registry: ConnectionRegistry) -> None:
        self._process = process
        self._registry = registry
        self._room = asyncio.Semaphore(AT_ONCE)
        self._wire: ValkeyWire | None = None
        self._task: asyncio.Task[None] | None = None
        self._working: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        self._wire = ValkeyWire(
            environment().events,
            connect_timeout_s=CONNECT_TIMEOUT_S,
            answer_timeout_s=WAIT_S + 5,
        )
        self._task = asyncio.create_task(self._keep_listening(self._wire))
        answers_here(self._process)

    async def stop(self) -> None:
        tasks = [*self._working, *([self._task] if self._task is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._task = None
        if self._wire is not None:
            await self._wire.aclose()

    async def _keep_listening(self, wire: ValkeyWire) -> None:
        while True:
            try:
                await self._listen(wire)
            except RedisError as error:
                log.debug("questions of *Why?* cannot be received: %s", error)
                await asyncio.sleep(RETRY_S)

    async def _listen(self, wire: ValkeyWire) -> None:
        await self._room.acquire()
        try:
            reply = await wire.call("BLPOP", questions(self._process), WAIT_S)
            question = _read(reply[1]) if isinstance(reply, list) else None
        except BaseException:
            self._room.release()
            raise
        if question is None:
            self._room.release()
            return
        task = asyncio.create_task(self._answer(question))
        self._working.add(task)
        task.add_done_callback(self._on_answered)

    def _on_answered(self, task: asyncio.Task[None]) -> None:
        self._working.discard(task)
        self._room.release()

    async def _answer(self, question: TraceQuestion) -> None:
        try:
            answer = await self.explain(question)
        except Exception as error:  # noqa: BLE001 -- the caller receives it
            answer = _refusal(translate(error))
        try:
            await event_server.wire().call("RPUSH", answers(question.nonce), to_json(answer))
            await event_server.wire().call("EXPIRE", answers(question.nonce), LIFETIME_S)
        except RedisError as error:
            log.info("an answer to *Why?* could not be sent: %s", error)

    async def explain(self, question: TraceQuestion) -> JsonObject:
        """Explain what happened to a version, for a real or a hypothetical subscription."""
        try:
            subject = await self._subject(question)
            gathered = await evidence.gather(subject, question.key, question.version)
        except (psycopg.Error, OSError, RedisError) as error:
            log.warning("a question of *Why?* could not be answered: %s", error)
            raise Unavailable(headers={"Retry-After": "1"}) from None
        return story.render(gathered)

    async def _subject(self, question: TraceQuestion) -> Subject:
        about = question.about
        if not isinstance(about, Hypothesis):
            return await subjects.of_subscription(self._subscription_of(question.tenant_id, about))
        request = subscribe_request.read(Value.parse(about.query.encode()))
        return await subjects.of_query(
            question.tenant_id, request, about.claims, is_ruled=about.is_ruled
        )

    def _subscription_of(self, tenant_id: UUID, subscription: str) -> QuerySubscription:
        for connection in self._registry.connections.values():
            if connection.caller is None or connection.caller.tenant.id != tenant_id:
                continue
            for opened in connection.subscriptions:
                if opened.id == subscription and opened.subscription is not None:
                    if not isinstance(opened.subscription, QuerySubscription):
                        raise NotTraceable
                    return opened.subscription
        raise NotFound("The subscription does not exist.")


def _read(text: object) -> TraceQuestion | None:
    if not isinstance(text, bytes):
        return None
    try:
        return TraceQuestion.from_json(text)
    except (ValueError, KeyError, TypeError):
        log.warning("a question of *Why?* could not be read")
        return None


def _refusal(error: ApiError) -> JsonObject:
    return {"refused": {"code": error.code, "detail": error.detail}}
