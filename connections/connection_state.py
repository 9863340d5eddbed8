"""The states of a connection and the legal transitions.

GREETING   accepted; its caller is not known
ADMITTING  its caller is known and is being counted against the tenant's quota
OPEN       it may subscribe, query and write
EXPIRED    its token has expired and its subscriptions have ended; `auth` makes it OPEN again
CLOSED     nothing more is read or sent
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum


class State(Enum):
    """The state of a connection."""

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
    """A transition that is not legal in the current state: a bug."""


def step(state: State, to: State) -> State:
    """Return the next state, or raise if the transition is not legal."""
    if to not in TRANSITIONS[state]:
        raise IllegalTransition(f"{state.value} -> {to.value}")
    return to
