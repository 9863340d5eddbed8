"""Identifies the caller of a connection.

A program sends its credentials as headers of the handshake, or in `hello`. A browser can send no
headers and presents a ticket, or an end user's token with the publishable key. Cookies are ignored,
because a page of any site could make the browser send them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from connections import tickets
from connections.messages import Message
from data_plane.calls import authenticated, looked_up
from data_plane.http import CallHead
from foundation import request_context
from foundation.asgi import Scope
from foundation.errors import Forbidden, InvalidCredentials
from tenants import cors
from tenants.credentials import act_as
from tenants.credentials.authenticate import KEY_HEADER, TENANT_HEADER
from tenants.credentials.cache import NotCached, cached_only
from tenants.credentials.credential_reference import (
    CredentialReference,
    reference_of,
    resolve_reference,
)
from tenants.credentials.facts import TenantFacts
from tenants.credentials.origins import foreign_origin
from tenants.principals import Principal

MEMBERS = ("token", "key", "tenant")
_CREDENTIALS = tuple(name.lower().encode() for name in ("Authorization", KEY_HEADER, TENANT_HEADER))
_SCHEMES = {"ws": "http", "wss": "https"}


@dataclass(frozen=True, slots=True)
class ConnectionCaller:
    """The caller of a connection, and the reference by which it can be looked up again."""

    principal: Principal
    tenant: TenantFacts
    credential: CredentialReference


@dataclass(frozen=True, slots=True)
class Handshake:
    """The request that opened a connection."""

    #: As of a GET, and without cookies.
    scope: Scope
    head: CallHead

    @classmethod
    def of(cls, scope: Scope) -> Handshake:
        headers = [pair for pair in scope["headers"] if pair[0] != b"cookie"]
        scheme = _SCHEMES.get(scope["scheme"], scope["scheme"])
        plain = {**scope, "method": "GET", "scheme": scheme, "headers": headers}
        return cls(plain, CallHead(plain))

    @property
    def origins(self) -> tuple[str, ...]:
        """The possible origins. Browsers send no origin when a page reads from its own."""
        origin = self.head.headers.get("Origin")
        if origin is not None:
            return (origin,)
        return "", f"{self.head.scheme}://{self.head.get_host()}"

    @property
    def request_id(self) -> str:
        request_id: str = self.scope["state"]["request_id"]
        return request_id

    @property
    def has_credentials(self) -> bool:
        return "Authorization" in self.head.headers or KEY_HEADER in self.head.headers

    def with_credentials(self, credentials: dict[str, str]) -> Scope:
        """Return the handshake with these headers instead of its own credentials."""
        others = [pair for pair in self.scope["headers"] if pair[0] not in _CREDENTIALS]
        added = [
            (name.lower().encode(), text.encode("latin-1")) for name, text in credentials.items()
        ]
        return {**self.scope, "headers": others + added}


async def by_headers(handshake: Handshake) -> ConnectionCaller:
    """Return the caller that the handshake's headers identify."""
    return await _authenticate(handshake, handshake.head)


async def by_message(handshake: Handshake, message: Message, *others: str) -> ConnectionCaller:
    """Return the caller that `hello` or `auth` identifies. `others`: further members of the
    message.
    """
    message.allow((*MEMBERS, *others))
    token = message.text("token")
    if token is not None and token.startswith(tickets.PREFIX):
        return await _by_ticket(handshake, await tickets.redeem(token, handshake.origins))
    return await _authenticate(handshake, CallHead(scope_of(handshake, message)))


def scope_of(handshake: Handshake, message: Message) -> Scope:
    """Return the handshake with the credentials of a message instead of its own."""
    token, key, tenant = (message.text(member) for member in MEMBERS)
    headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
    if key is not None:
        headers[KEY_HEADER] = key
    if tenant is not None:
        headers[TENANT_HEADER] = tenant
    try:
        return handshake.with_credentials(headers)
    except UnicodeEncodeError:
        raise InvalidCredentials("Credentials must be text.") from None


async def by_ticket(handshake: Handshake, text: str) -> tuple[ConnectionCaller, tickets.Ticket]:
    """Return the caller that an EventSource's ticket identifies, and the ticket."""
    ticket = await tickets.check(text, handshake.origins)
    return await _by_ticket(handshake, ticket), ticket


async def _by_ticket(handshake: Handshake, ticket: tickets.Ticket) -> ConnectionCaller:
    if act_as.is_requested(handshake.head):
        raise Forbidden(
            "A ticket stands for its caller: send the header when you create the ticket, and "
            "connect without it."
        )

    def look_up() -> tuple[Principal, TenantFacts]:
        return resolve_reference(ticket.standing, ticket.claims)

    try:
        with cached_only():
            principal, tenant = look_up()
    except NotCached:
        principal, tenant = await looked_up(look_up)
    # A server may have requested it, which has no origin.
    reference = replace(ticket.standing, origin=foreign_origin(handshake.head) or "")
    return _require_origin(handshake, ConnectionCaller(principal, tenant, reference))


async def _authenticate(handshake: Handshake, head: CallHead) -> ConnectionCaller:
    principal, tenant = await authenticated(head)
    return _require_origin(
        handshake, ConnectionCaller(principal, tenant, reference_of(principal, head))
    )


def _require_origin(handshake: Handshake, caller: ConnectionCaller) -> ConnectionCaller:
    """Reject pages of origins that the tenant does not list."""
    request_context.authenticated(caller.principal.actor)
    request_context.tenant_id.set(str(caller.tenant.id))
    cors.answer_headers(handshake.head, caller.tenant)
    return caller


def same_tenant(before: ConnectionCaller, after: ConnectionCaller) -> None:
    """Raise if credentials belong to a different tenant than the connection."""
    if before.tenant.id != after.tenant.id:
        raise Forbidden("A connection cannot change to another tenant.")
