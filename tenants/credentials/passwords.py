"""Password rules, and hashing that cannot be used to exhaust the server.

One argon2id hash takes about 130 ms of a core and 100 MiB of memory, and anyone can trigger one by
trying to log in. So a process computes few hashes at a time, lets few callers wait, and rejects the
rest at once: a flood of logins slows down logins and nothing else.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.contrib.auth.hashers import make_password
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError

from foundation.errors import FieldProblem, InvalidBody, Unavailable
from tenants.models import User

#: Longer passwords add no security.
MAX_PASSWORD_CHARS = 200
HASHING_AT_ONCE = 2
WAITING_AT_MOST = 8
WAIT_S = 3.0


class HashingGate:
    """Admits `at_once` callers, lets `waiting` more wait for up to `wait_s`, rejects others."""

    def __init__(
        self,
        at_once: int = HASHING_AT_ONCE,
        waiting: int = WAITING_AT_MOST,
        wait_s: float = WAIT_S,
    ) -> None:
        self._wait_s = wait_s
        self._inside = threading.Semaphore(at_once)
        self._queue = threading.Semaphore(at_once + waiting)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Hold a slot while hashing; raise `Unavailable` if none is free."""
        if not self._queue.acquire(blocking=False):
            raise _busy()
        try:
            if not self._inside.acquire(timeout=self._wait_s):
                raise _busy()
            try:
                yield
            finally:
                self._inside.release()
        finally:
            self._queue.release()


def _busy() -> Unavailable:
    return Unavailable(
        "Too many passwords are being checked at the moment. Retry.",
        headers={"Retry-After": "2"},
    )


_gate = HashingGate()


def hashed(password: str) -> str:
    """Return the stored hash of a password."""
    with _gate.turn():
        return make_password(password)


def is_right(user: User | None, password: str) -> bool:
    """Return whether the password is correct. Without a user: False, after the same time."""
    with _gate.turn():
        if user is None:
            make_password(password)
            return False
        return user.check_password(password)


def check_rules(password: str, user: User, pointer: str = "/password") -> None:
    """Raise `InvalidBody` with every rule that a user's new password breaks."""
    try:
        validate_password(password, user)
    except ValidationError as broken:
        raise InvalidBody(
            errors=[
                FieldProblem(pointer, error.code or "invalid", " ".join(error.messages))
                for error in broken.error_list
            ]
        ) from None
