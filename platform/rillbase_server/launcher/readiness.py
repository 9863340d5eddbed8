"""Readiness checks: how the launcher learns that a service does its work."""

import asyncio
import json
from pathlib import Path
from urllib.parse import urlsplit

from .postgres import PostgresCluster
from .service import Check
from .valkey import ValkeyStore

ANSWER_TIMEOUT_S = 3.0
MAX_ANSWER_BYTES = 65_536
HTTP_OK = 200


def postgres_accepts(cluster: PostgresCluster) -> Check:
    """Ready when the server says so in its lock file."""

    async def check(pid: int) -> str | None:
        return None if cluster.accepts_connections(pid) else "does not accept connections yet"

    return check


def valkey_answers(store: ValkeyStore) -> Check:
    """Ready when a PING is answered, that is, once the append-only file has been loaded."""

    async def check(_pid: int) -> str | None:
        return None if store.answers() else "does not answer yet"

    return check


def mark_written(mark: Path) -> Check:
    """Ready when the process has written its pid to ``mark``."""

    async def check(pid: int) -> str | None:
        return None if _content(mark) == str(pid) else "has not announced itself yet"

    return check


def web_ready(url: str) -> Check:
    """Ready when GET /readyz answers 200; otherwise the answer names what is missing."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or 80

    async def check(_pid: int) -> str | None:
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                status, body = await _get(
                    host, port, f"GET /readyz HTTP/1.1\r\nHost: {parts.netloc}\r\n"
                )
        except (OSError, TimeoutError) as problem:
            return f"does not answer yet ({problem!r})"
        return None if status == HTTP_OK else f"/readyz answers {status}: {_short(body)}"

    return check


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
        raise ConnectionError("no HTTP answer")
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
