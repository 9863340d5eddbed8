"""A load generator with little overhead: raw HTTP/1.1 over kept-alive connections.

It runs in a separate process, so that its work is not counted as the server's, and supports only
responses with a Content-Length.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Target:
    """One request, which is sent repeatedly."""

    host: str
    port: int
    path: str
    headers: tuple[tuple[str, str], ...] = ()
    #: A text that every correct response contains.
    expect: str = ""
    method: str = "GET"
    body: bytes = b""
    status: int = 200

    def wire(self) -> bytes:
        lines = [f"{self.method} {self.path} HTTP/1.1", f"Host: {self.host}:{self.port}"]
        lines += [f"{name}: {value}" for name, value in self.headers]
        if self.body:
            lines += ["Content-Type: application/json", f"Content-Length: {len(self.body)}"]
        return ("\r\n".join(lines) + "\r\n\r\n").encode() + self.body


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run measured."""

    requests: int
    seconds: float
    latencies_ms: list[float]

    @property
    def rate_per_s(self) -> float:
        return self.requests / self.seconds


class WrongAnswerError(RuntimeError):
    """The server returned a wrong response; figures of such a run are meaningless."""


def run(target: Target, *, connections: int, seconds: float) -> Outcome:
    """Send `target` over several connections for a while, from another process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_run, (target, connections, seconds))


def _run(target: Target, connections: int, seconds: float) -> Outcome:
    return asyncio.run(_drive(target, connections, seconds))


async def _drive(target: Target, connections: int, seconds: float) -> Outcome:
    latencies: list[float] = []
    begin = time.perf_counter()
    deadline = begin + seconds
    await asyncio.gather(*(_client(target, deadline, latencies) for _ in range(connections)))
    return Outcome(len(latencies), time.perf_counter() - begin, latencies)


async def _client(target: Target, deadline: float, latencies: list[float]) -> None:
    reader, writer = await asyncio.open_connection(target.host, target.port)
    wire, expect, status = target.wire(), target.expect.encode(), b" %d " % target.status
    try:
        while (sent := time.perf_counter()) < deadline:
            writer.write(wire)
            head = await reader.readuntil(b"\r\n\r\n")
            body = await reader.readexactly(_length(head))
            latencies.append((time.perf_counter() - sent) * 1000)
            if status not in head[:16] or expect not in body:
                raise WrongAnswerError(f"{head.decode()}{body.decode()}")
    finally:
        writer.close()


def _length(head: bytes) -> int:
    lowered = head.lower()
    at = lowered.index(b"content-length:") + len(b"content-length:")
    return int(lowered[at : lowered.index(b"\r\n", at)])
