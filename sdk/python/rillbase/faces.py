"""Makes calls that wait of calls that are awaited.

A synchronous client has an asynchronous one inside, on an event loop in a thread of its own. Its
calls are the other's, each made into one that waits by a function here: what they do, and which
arguments they take, is written down once.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import Future
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

T = TypeVar("T")
A = TypeVar("A")
P = ParamSpec("P")


class Loop:
    """An event loop on a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="rillbase", daemon=True)
        self._thread.start()

    def begin(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Return what will come of a coroutine. Those that are begun first also run first."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return what comes of a coroutine."""
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError("Listeners must not wait: use `later`, or another thread.")
        future = self.begin(work)
        try:
            return future.result()
        except BaseException:
            # Ctrl-C in the caller's thread ends what it waited for.
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
        """Return what a function returns that has to run on the loop."""
        return self.run(_called(make))

    def soon(self, do: Callable[[], object]) -> None:
        """Call a function on the loop, and wait for nothing."""
        self._loop.call_soon_threadsafe(do)

    def close(self) -> None:
        """End; whoever still waits for something learns that it was cancelled."""
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


async def _called(make: Callable[[], T]) -> T:
    return make()


async def _cancel_all() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class Face:
    """Something synchronous, and what it stands before."""

    def __init__(self, loop: Loop, inner: object) -> None:
        self._loop = loop
        self._inner: Any = inner


def waiting(
    call: Callable[Concatenate[A, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Face, P], T]:
    """Make a call that waits for what comes of it."""

    @wraps(call)
    def made(face: Face, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return face._loop.run(call(face._inner, *args, **kwargs))

    return made


def beginning(
    call: Callable[Concatenate[A, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Face, P], Future[T]]:
    """Make a call that returns at once what will come of it."""

    @wraps(call)
    def made(face: Face, /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        return face._loop.begin(call(face._inner, *args, **kwargs))

    return made


def iterating(
    call: Callable[Concatenate[A, P], AsyncIterator[T]],
) -> Callable[Concatenate[Face, P], Iterator[T]]:
    """Make a call that yields what the other one yields."""

    @wraps(call)
    def made(face: Face, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        return face._loop.iterate(face._loop.call(lambda: call(face._inner, *args, **kwargs)))

    return made


def telling(
    call: Callable[Concatenate[A, P], Callable[[], None]],
) -> Callable[Concatenate[Face, P], Callable[[], None]]:
    """Make a call that tells a listener from now on, on the client's thread."""

    @wraps(call)
    def made(face: Face, /, *args: P.args, **kwargs: P.kwargs) -> Callable[[], None]:
        stop = face._loop.call(lambda: call(face._inner, *args, **kwargs))
        # Listeners may stop themselves, and they run on the loop's thread.
        return lambda: face._loop.soon(stop)

    return made
