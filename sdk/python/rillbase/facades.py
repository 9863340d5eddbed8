"""Turns asynchronous calls into synchronous ones.

A synchronous client has an asynchronous one inside, on an event loop in a separate thread. Each of
its calls is made from an asynchronous one by a function here, so behaviour and arguments are
defined once.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import Future
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

#: How the example of an asynchronous call reads for its synchronous form.
_SYNCHRONOUS = re.compile(r"\basync (?=for |with )|\bawait |\bAsync(?=[A-Z])")
#: An example's first line, which makes the call, and the lines after it, which use the result.
_CALL = re.compile(r"(Example:\n\s+)(?:\w+ = )?await (\w+)(\.[^\n]*)[^\0]*")

T = TypeVar("T")
A = TypeVar("A")
P = ParamSpec("P")


class LoopThread:
    """An event loop on a separate thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="rillbase", daemon=True)
        self._thread.start()

    def begin(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a coroutine and return its future. They start in order."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine and return its result."""
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError("Listeners must not block: use `later`, or another thread.")
        future = self.begin(work)
        try:
            return future.result()
        except BaseException:
            # Ctrl-C in the caller's thread cancels the pending call.
            future.cancel()
            raise

    def iterate(self, source: AsyncIterator[T]) -> Iterator[T]:
        """Yield what an asynchronous iterator yields."""
        try:
            while True:
                try:
                    yield self.run(_next(source))
                except StopAsyncIteration:
                    return
        finally:
            self.run(_close(source))

    def call(self, make: Callable[[], T]) -> T:
        """Run a function on the loop and return its result."""
        return self.run(_call(make))

    def soon(self, do: Callable[[], object]) -> None:
        """Schedule a function on the loop without waiting."""
        self._loop.call_soon_threadsafe(do)

    def close(self) -> None:
        """Stop; pending calls are cancelled."""
        self.run(_cancel_all())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _next(source: AsyncIterator[T]) -> T:
    return await anext(source)


async def _close(source: AsyncIterator[object]) -> None:
    close = getattr(source, "aclose", None)
    if close is not None:
        await close()


async def _call(make: Callable[[], T]) -> T:
    return make()


async def _cancel_all() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class SyncFacade:
    """A synchronous object, and the asynchronous one that it wraps."""

    def __init__(self, loop: LoopThread, inner: object) -> None:
        self._loop = loop
        self._inner: Any = inner


def synchronous(documented: str | None) -> str | None:
    """Return the documentation of a call for its synchronous form."""
    return None if documented is None else _SYNCHRONOUS.sub("", documented)


def _without_waiting(documented: str | None) -> str | None:
    """Return the documentation of a write for its form that returns a future."""
    return None if documented is None else _CALL.sub(_future_of, documented)


def _future_of(call: re.Match[str]) -> str:
    head, owner, rest = call.groups()
    indent = head.rpartition("\n")[2]
    return f"{head}future = {owner}.later{rest}\n{indent}future.result()"


def blocking(
    call: Callable[Concatenate[A, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[SyncFacade, P], T]:
    """Make a call that waits for the result."""

    @wraps(call)
    def made(facade: SyncFacade, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return facade._loop.run(call(facade._inner, *args, **kwargs))

    made.__doc__ = synchronous(call.__doc__)
    return made


def beginning(
    call: Callable[Concatenate[A, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[SyncFacade, P], Future[T]]:
    """Make a call that returns a future immediately."""

    @wraps(call)
    def made(facade: SyncFacade, /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        return facade._loop.begin(call(facade._inner, *args, **kwargs))

    made.__doc__ = _without_waiting(call.__doc__)
    return made


def iterating(
    call: Callable[Concatenate[A, P], AsyncIterator[T]],
) -> Callable[Concatenate[SyncFacade, P], Iterator[T]]:
    """Make a call that yields the items of the other one."""

    @wraps(call)
    def made(facade: SyncFacade, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        return facade._loop.iterate(facade._loop.call(lambda: call(facade._inner, *args, **kwargs)))

    made.__doc__ = synchronous(call.__doc__)
    return made


def notifying(
    call: Callable[Concatenate[A, P], Callable[[], None]],
) -> Callable[Concatenate[SyncFacade, P], Callable[[], None]]:
    """Make a call that registers a listener, which runs on the client's thread."""

    @wraps(call)
    def made(facade: SyncFacade, /, *args: P.args, **kwargs: P.kwargs) -> Callable[[], None]:
        stop = facade._loop.call(lambda: call(facade._inner, *args, **kwargs))
        # Listeners may unsubscribe themselves, and they run on the loop's thread.
        return lambda: facade._loop.soon(stop)

    made.__doc__ = synchronous(call.__doc__)
    return made
