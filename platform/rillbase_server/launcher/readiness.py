"""Readiness and liveness checks of services."""

import asyncio
import json
from pathlib import Path
from urllib.parse import urlsplit

from .ports import LOOPBACK
from .postgres import PostgresCluster
from .service import Check
from .valkey import ValkeyStore

ANSWER_TIMEOUT_S = 3.0
#: Of checks whether a service hangs.
LIVENESS_TIMEOUT_S = 2.0
MAX_ANSWER_BYTES = 65_536
HTTP_OK = 200


def postgres_accepts(cluster: PostgresCluster) -> Check:
    """Ready when the server's lock file says so."""

    async def check(pid: int) -> str | None:
        return None if cluster.accepts_connections(pid) else "does not accept connections yet"

    return check


def valkey_answers(store: ValkeyStore) -> Check:
    """Ready when a PING is answered, that is, once the append-only file has been loaded."""

    async def check(_pid: int) -> str | None:
        return None if store.answers() else "does not respond yet"

    return check


def mark_written(mark: Path) -> Check:
    """Ready when the process has written its pid to ``mark``."""

    async def check(pid: int) -> str | None:
        return None if _content(mark) == str(pid) else "has not reported readiness yet"

    return check


def web_ready(url: str) -> Check:
    """Ready when GET /readyz returns 200; otherwise the response names what is missing."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or 80

    async def check(_pid: int) -> str | None:
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                status, body = await _get(
                    host, port, f"GET /readyz HTTP/1.1\r\nHost: {parts.netloc}\r\n"
                )
        except (OSError, TimeoutError) as error:
            return f"does not respond yet ({error!r})"
        return None if status == HTTP_OK else f"/readyz responds with {status}: {_short(body)}"

    return check


def http_answers(url: str) -> Check:
    """Alive when there is any response."""
    parts = urlsplit(url)
    request = f"GET /healthz HTTP/1.1\r\nHost: {parts.netloc}\r\n"

    async def check(_pid: int) -> str | None:
        async with asyncio.timeout(LIVENESS_TIMEOUT_S):
            await _get(parts.hostname or "", parts.port or 80, request)
        return None

    return check


def http_condition(url: str, token: str = "") -> Check:
    """Report the dependencies that are not ready, according to /readyz, and with the token of its
    metrics the causes in its /status.
    """
    parts = urlsplit(url)
    request = f"GET /readyz HTTP/1.1\r\nHost: {parts.netloc}\r\n"
    status_request = f"GET /status HTTP/1.1\r\nHost: {parts.netloc}\r\n"
    if token:
        status_request += f"Authorization: Bearer {token}\r\n"

    async def check(_pid: int) -> str | None:
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            _, body = await _get(parts.hostname or "", parts.port or 80, request)
            problem = readiness_problem(body)
            if problem is None:
                return None
            _, status = await _get(parts.hostname or "", parts.port or 80, status_request)
        return "; ".join([problem, *_causes(status)])

    return check


def readiness_problem(body: bytes) -> str | None:
    """Summarize the problems in a response of /readyz; None if there are none."""
    try:
        report = json.loads(body)
        down = {
            name: dependency
            for name, dependency in report["dependencies"].items()
            if dependency["state"] != "up"
        }
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    shown_members = ("latency_ms", "state")
    problems = [
        f"{name} {dependency['state']}"
        + "".join(f", {k} {v}" for k, v in dependency.items() if k not in shown_members)
        for name, dependency in down.items()
    ]
    return "; ".join(problems) or None


def _causes(status: bytes) -> list[str]:
    """Return why a grid cannot start its nodes, according to its /status."""
    try:
        cause = json.loads(status)["launcher"]["cause"]
    except (ValueError, KeyError, TypeError):
        return []
    return [str(cause)] if cause else []


def valkey_pings(store: ValkeyStore) -> Check:
    """Alive when there is any reply to a PING."""

    async def check(_pid: int) -> str | None:
        return await _bytes_answered(store.port, b"PING\r\n")

    return check


def postgres_responds(port: int) -> Check:
    """Alive when the postmaster starts a process that responds to a TLS request."""
    ssl_request = (8).to_bytes(4) + (80_877_103).to_bytes(4)

    async def check(_pid: int) -> str | None:
        return await _bytes_answered(port, ssl_request)

    return check


def file_renewed(path: Path) -> Check:
    """Alive when the process has renewed its file since the last check."""
    last_seen_ns: int | None = None

    async def check(_pid: int) -> str | None:
        nonlocal last_seen_ns
        before, last_seen_ns = last_seen_ns, _renewed_ns(path)
        return None if last_seen_ns not in (before, None) else "does not report"

    return check


def _renewed_ns(path: Path) -> int | None:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return None


async def _bytes_answered(port: int, question: bytes) -> str | None:
    async with asyncio.timeout(LIVENESS_TIMEOUT_S):
        reader, writer = await asyncio.open_connection(LOOPBACK, port)
        try:
            writer.write(question)
            return None if await reader.read(1) else "closes connections"
        finally:
            writer.close()


def _content(mark: Path) -> str:
    try:
        return mark.read_text().strip()
    except FileNotFoundError:
        return ""


async def _get(host: str, port: int, request: str) -> tuple[int, bytes]:
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(f"{request}Connection: close\r\n\r\n".encode())
        answer = await _read(reader)
    finally:
        writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    words = head.split(b" ", 2)
    if len(words) < 2 or not words[1].isdigit():  # noqa: PLR2004 - protocol and status
        raise ConnectionError("no HTTP response")
    return int(words[1]), body


async def _read(reader: asyncio.StreamReader) -> bytes:
    answer = b""
    while len(answer) < MAX_ANSWER_BYTES and (chunk := await reader.read(MAX_ANSWER_BYTES)):
        answer += chunk
    return answer


def _short(body: bytes) -> str:
    try:
        return json.dumps(json.loads(body))[:500]
    except ValueError:
        return body[:200].decode(errors="replace")
