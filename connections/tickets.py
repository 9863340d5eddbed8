"""Tickets: credentials for browsers where they cannot send headers.

A ticket represents the caller who requested it, from one origin. For a WebSocket it is valid once,
for half a minute. An EventSource reconnects to the same URL whenever the connection breaks, so its
ticket is valid for an hour, and only for the query that it was issued for.

Tickets are stored in Valkey, encrypted, under their hash. If Valkey loses them, the page requests a
new one. A ticket refers to the caller's credential and does not contain it, so revoking a key
invalidates its tickets.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any

from redis.exceptions import RedisError

from foundation.errors import Forbidden, InvalidCredentials, Unavailable
from foundation.event_server import wire
from foundation.json_types import JsonObject
from foundation.sealing import seal, unseal
from tenants.credentials.credential_reference import CredentialReference
from tenants.principals import PrincipalKind, TokenReference

PREFIX = "rbl_"
SOCKET_LIFETIME_S = 30
STREAM_LIFETIME_S = 3600
_PURPOSE = "ticket"


@dataclass(frozen=True, slots=True)
class Ticket:
    """The caller that a ticket represents, and what it is valid for."""

    standing: CredentialReference
    #: An end user's claims.
    claims: JsonObject
    #: The origin whose pages may present it; empty: programs, which send none.
    origin: str
    #: The query for which it is valid, as the parameters of its URL; None: a WebSocket.
    query: JsonObject | None = None

    @property
    def lifetime_s(self) -> int:
        return SOCKET_LIFETIME_S if self.query is None else STREAM_LIFETIME_S


async def issue(ticket: Ticket) -> str:
    """Keep a ticket and return its text."""
    text = PREFIX + secrets.token_urlsafe(32)
    plain = json.dumps(asdict(ticket)).encode()
    sealed = seal(plain, purpose=_PURPOSE, owner=_name(text))
    try:
        await wire().call("SET", _name(text), sealed, "EX", ticket.lifetime_s)
    except RedisError:
        raise Unavailable(
            "Tickets cannot be stored at the moment. Retry.", headers={"Retry-After": "1"}
        ) from None
    return text


async def redeem(text: str, origins: Collection[str]) -> Ticket:
    """Use up a WebSocket's ticket and return it, or raise why it is not valid."""
    return await _read("GETDEL", text, origins, for_socket=True)


async def check(text: str, origins: Collection[str]) -> Ticket:
    """Return an EventSource's ticket, or raise why it is not valid."""
    return await _read("GET", text, origins, for_socket=False)


async def _read(command: str, text: str, origins: Collection[str], *, for_socket: bool) -> Ticket:
    try:
        sealed = await wire().call(command, _name(text))
    except RedisError:
        raise Unavailable(
            "Tickets cannot be read at the moment. Retry.", headers={"Retry-After": "1"}
        ) from None
    if not isinstance(sealed, bytes):
        raise InvalidCredentials("The ticket has been used or has expired.")
    stored = json.loads(unseal(sealed, purpose=_PURPOSE, owner=_name(text)))
    ticket = Ticket(
        _reference(stored["standing"]),
        stored["claims"],
        stored["origin"],
        stored["query"],
    )
    if (ticket.query is None) is not for_socket:
        raise InvalidCredentials("The ticket is for a different kind of connection.")
    if ticket.origin not in origins:
        raise Forbidden("The ticket was issued for a different origin.")
    return ticket


def _reference(stored: JsonObject) -> CredentialReference:
    token: Any = stored.get("token")
    restored: dict[str, Any] = {
        **stored,
        "kind": PrincipalKind(str(stored["kind"])),
        "token": None if token is None else TokenReference(**token),
    }
    return CredentialReference(**restored)


def _name(text: str) -> str:
    return "{rillbase}:ticket:" + sha256(text.encode()).hexdigest()
