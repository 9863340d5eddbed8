"""A server of a benchmark that speaks the Redis protocol: a storage node or a Valkey."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import redis
from redis.backoff import ConstantBackoff
from redis.retry import Retry

#: The password of the administrator and of every namespace.
TOKEN = "the-token-of-the-benchmark"
_START_TIMEOUT_S = 60.0


@contextmanager
def running(
    command: Sequence[str], environment: Mapping[str, str], port: int, token: str | None
) -> Iterator[None]:
    """Run a server until the block ends, and wait for its first response."""
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, env=environment, stdout=quiet, stderr=quiet) as process:
        try:
            _await(port, token)
            yield
        finally:
            process.terminate()


def ask(port: int, *words: str, user: str = "bench") -> Any:
    """Return what a node answers."""
    never = Retry(ConstantBackoff(0), 0)
    with redis.Redis(port=port, username=user, password=TOKEN, retry=never) as client:
        return client.execute_command(*words)


def _await(port: int, token: str | None) -> None:
    deadline = time.monotonic() + _START_TIMEOUT_S
    while True:
        try:
            with redis.Redis(port=port, password=token) as client:
                client.ping()
        except redis.ConnectionError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return
