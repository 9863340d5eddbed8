"""Hashing passwords cannot be used to exhaust the server."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from foundation.errors import Unavailable
from tenants.credentials.passwords import HashingGate
from tests.waiting import wait_until


def test_few_passwords_are_hashed_concurrently_and_the_queue_is_limited() -> None:
    gate = HashingGate(at_once=1, waiting=1, wait_s=30)
    go_on = threading.Event()
    entered: list[int] = []

    def hash_something(number: int) -> None:
        with gate.turn():
            entered.append(number)
            go_on.wait(timeout=30)

    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(hash_something, 1)
        wait_until(lambda: entered == [1], what="the first to hash")
        second = threads.submit(hash_something, 2)
        wait_until(lambda: _refused(gate), what="the queue to be full")
        assert entered == [1]
        go_on.set()
        first.result(timeout=30)
        second.result(timeout=30)
    assert entered == [1, 2]
    assert not _refused(gate)


def test_no_caller_waits_longer_than_the_limit() -> None:
    gate = HashingGate(at_once=1, waiting=1, wait_s=0.01)
    with gate.turn(), pytest.raises(Unavailable) as refused, gate.turn():
        pass
    assert refused.value.headers["Retry-After"] == "2"


def test_an_error_while_hashing_releases_the_slot() -> None:
    gate = HashingGate(at_once=1, waiting=0, wait_s=0.01)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError), gate.turn():
            raise ZeroDivisionError
    assert not _refused(gate)


def _refused(gate: HashingGate) -> bool:
    """Try to pass the gate without waiting."""
    if not gate._queue.acquire(blocking=False):
        return True
    gate._queue.release()
    return False


def test_the_application_hashes_passwords_with_the_default_costs_of_argon2id() -> None:
    """The tests' own processes use lower ones (`tests/conftest.py`)."""
    program = "from django.contrib.auth.hashers import make_password; print(make_password('x'))"
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert done.stdout.startswith("argon2$argon2id$v=19$m=102400,t=2,p=8$")
