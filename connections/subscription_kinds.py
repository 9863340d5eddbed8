"""How a kind of subscription joins the connections over which clients subscribe.

Connections (`connections`, `realtime.sse`) know who subscribes and carry frames; what can be
subscribed to says so here. A kind is found by the member of `subscribe` that names its source:
`collection`, `topic`, `aggregate`. Parts that must not import one another meet in this registry,
and `rillbase_server` decides which of them are in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from foundation.errors import InvalidBody
from foundation.json_types import JsonObject
from rillbase_native import Value
from tenants.credentials.facts import TenantFacts
from tenants.principals import Principal


@dataclass(frozen=True, slots=True)
class Subscriber:
    """Who subscribes, and under which name on which connection."""

    principal: Principal
    tenant: TenantFacts
    connection: str
    #: The name that the client chose for the subscription.
    name: str
    #: Documents are sent as canonical Extended JSON.
    canonical: bool = False


class Outlet(Protocol):
    """Where the frames of one subscription go."""

    def send(self, frame: bytes) -> None:
        """Send a frame, JSON text, after those before. It is kept until the client takes it."""

    def ended(self) -> None:
        """Forget the subscription: the frame that says so has been sent."""


class Subscription(Protocol):
    """One subscription that has begun."""

    def close(self) -> None:
        """Send nothing more, not even a notification of the end."""

    def unsubscribed(self) -> None:
        """Called when the client has unsubscribed and will not resume. `close` follows."""

    def drained(self, frames: int, size_bytes: int) -> None:
        """Called with how many of the frames and bytes have left for the client."""

    async def judge(self, subscriber: Subscriber) -> None:
        """Continue with the caller's current scopes and claims. End if they do not allow it."""

    def figures(self) -> JsonObject:
        """Describe the subscription to the tenant's members: what is watched, and how it goes."""


class Kind(Protocol):
    """Something that can be subscribed to."""

    @property
    def member(self) -> str:
        """The member of `subscribe` that names the source."""

    async def open(self, subscriber: Subscriber, message: Value, outlet: Outlet) -> Subscription:
        """Begin a subscription, or raise why not. Frames may come before this returns."""


class Kinds:
    """The kinds of an installation."""

    def __init__(self, *kinds: Kind) -> None:
        self._by_member = {kind.member: kind for kind in kinds}

    def of(self, message: Value) -> Kind:
        """Return the kind that a `subscribe` asks for, or raise unless it names one source."""
        found = [kind for member, kind in self._by_member.items() if message.get(member)]
        if len(found) != 1:
            names = ", ".join(f"`{member}`" for member in self._by_member)
            raise InvalidBody(f"A subscription must name exactly one of: {names}.")
        return found[0]
