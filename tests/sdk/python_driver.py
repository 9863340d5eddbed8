"""The Python SDK's driver: a command a line in, a report a line out, as `sdk/js/test/drive.ts`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from typing import Any

from rillbase import AsyncClient, AsyncQuery, Change, Result, RillbaseError, ServerError, ejson
from rillbase.shapes import Document


class Driver:
    """One client that executes commands."""

    def __init__(self) -> None:
        self._client: AsyncClient | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Take commands until there are no more."""
        while line := await asyncio.to_thread(sys.stdin.readline):
            command = ejson.loads(line)
            if command["do"] == "open":
                await self._open(command["options"])
                continue
            task = asyncio.create_task(self._guarded(command))
            self._tasks.add(task)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._client is not None:
            await self._client.aclose()

    async def _open(self, options: Document) -> None:
        if self._client is not None:
            await self._client.aclose()
        self._client = AsyncClient(
            options["url"],
            key=options["key"],
            silence_s=options["silenceMs"] / 1000,
            queue=options.get("queued", False),
        )

    async def _guarded(self, command: Document) -> None:
        try:
            await self._perform(command)
        except RillbaseError as error:
            problem = {"code": error.code, "places": _places(error)}
            tell(command["name"], error=problem, documents=[], state="failed")

    def _perform(self, command: Document) -> Coroutine[Any, Any, None]:
        perform: Coroutine[Any, Any, None] = getattr(self, f"_{command['do']}")(command)
        return perform

    async def _watch(self, command: Document) -> None:
        async for snapshot in self._query(command).watch():
            tell(
                command["name"],
                documents=snapshot.documents,
                state=snapshot.state,
                pending=snapshot.has_pending_writes,
                error=None,
            )

    async def _follow(self, command: Document) -> None:
        async for change in self._query(command).changes():
            tell(command["name"], event=_event(change))

    async def _fetch(self, command: Document) -> None:
        tell(command["name"], documents=await self._query(command).fetch())

    async def _count(self, command: Document) -> None:
        tell(command["name"], count=await self._query(command).count())

    async def _insert(self, command: Document) -> None:
        written = await self._opened.collection(command["collection"]).insert(command["body"])
        tell(command["name"], version=written.version)

    async def _update(self, command: Document) -> None:
        todos = self._opened.collection(command["collection"])
        written = await todos.update(command["id"], command["body"])
        tell(command["name"], version=written.version)

    async def _transfer(self, command: Document) -> None:
        name, body = command["collection"], command["body"]
        results = await self._opened.transaction(
            lambda steps: (
                steps.collection(name).update(body["from"], {"$inc": {"n": -1}}),
                steps.collection(name).update(body["to"], {"$inc": {"n": 1}}),
            )
        )
        tell(command["name"], results=results)

    @property
    def _opened(self) -> AsyncClient:
        assert self._client is not None
        return self._client

    def _query(self, command: Document) -> AsyncQuery:
        query: AsyncQuery = self._opened.collection(command["collection"])
        if "filter" in command:
            query = query.filter(command["filter"])
        if "group" in command:
            query = query.group(**command["group"])
        for one in command.get("lookup", []):
            query = query.lookup(one["from"], one["local"], one["as"])
        for field, direction in command.get("sort", []):
            query = query.sort(field, descending=direction == -1)
        return query.limit(command["limit"]) if "limit" in command else query


def _event(change: Result | Change) -> Document:
    if isinstance(change, Result):
        return {"type": change.type, "documents": change.documents}
    return {"type": change.type, "id": change.item.id, "version": change.item.version}


def _places(error: RillbaseError) -> list[Document]:
    if not isinstance(error, ServerError):
        return []
    return [{"pointer": place.pointer, "code": place.code} for place in error.places]


def tell(name: str, **members: object) -> None:
    sys.stdout.write(ejson.dumps({"name": name, **members}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(Driver().run())
