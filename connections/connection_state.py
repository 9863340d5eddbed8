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


class ConnectionPhase(Enum):
    """The state of a connection."""

    GREETING = "greeting"
    ADMITTING = "admitting"
    OPEN = "open"
    EXPIRED = "expired"
    CLOSED = "closed"


TRANSITIONS: Mapping[ConnectionPhase, frozenset[ConnectionPhase]] = {
    ConnectionPhase.GREETING: frozenset({ConnectionPhase.ADMITTING, ConnectionPhase.CLOSED}),
    ConnectionPhase.ADMITTING: frozenset({ConnectionPhase.OPEN, ConnectionPhase.CLOSED}),
    ConnectionPhase.OPEN: frozenset({ConnectionPhase.EXPIRED, ConnectionPhase.CLOSED}),
    ConnectionPhase.EXPIRED: frozenset({ConnectionPhase.OPEN, ConnectionPhase.CLOSED}),
    ConnectionPhase.CLOSED: frozenset(),
}


class IllegalTransition(Exception):
    """A transition that is not legal in the current state: a bug."""


def step(state: ConnectionPhase, to: ConnectionPhase) -> ConnectionPhase:
    """Return the next state, or raise if the transition is not legal."""
    if to not in TRANSITIONS[state]:
        raise IllegalTransition(f"{state.value} -> {to.value}")
    return to
