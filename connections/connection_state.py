"""Where a connection stands, and which steps it may take.

GREETING   accepted; its caller is not known
ADMITTING  its caller is known and is being counted against the tenant's quota
OPEN       it subscribes, queries and writes
EXPIRED    its token has ended and its subscriptions with it; `auth` makes it OPEN again
CLOSED     nothing more is read or sent
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum


class State(Enum):
    """Where a connection stands."""

    GREETING = "greeting"
    ADMITTING = "admitting"
    OPEN = "open"
    EXPIRED = "expired"
    CLOSED = "closed"


TRANSITIONS: Mapping[State, frozenset[State]] = {
    State.GREETING: frozenset({State.ADMITTING, State.CLOSED}),
    State.ADMITTING: frozenset({State.OPEN, State.CLOSED}),
    State.OPEN: frozenset({State.EXPIRED, State.CLOSED}),
    State.EXPIRED: frozenset({State.OPEN, State.CLOSED}),
    State.CLOSED: frozenset(),
}


class IllegalTransition(Exception):
    """A step that a connection cannot take from where it stands: a mistake of the program."""


def step(state: State, to: State) -> State:
    """Return the next state, or raise unless it may follow."""
    if to not in TRANSITIONS[state]:
        raise IllegalTransition(f"{state.value} -> {to.value}")
    return to
