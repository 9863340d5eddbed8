"""The registry of what clients can subscribe to. Connections know the subscriber and send frames;
products register their kinds of subscription here. A kind is selected by the member of `subscribe`
that names its source: `collection`, `topic`, `aggregate`. Products must not import each other, so
`rillbase_server` decides which kinds are registered.
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
    """The destination of the frames of one subscription."""

    def send(self, frame: bytes) -> None:
        """Queue a frame, JSON text. It is kept until the client has received it."""

    def ended(self) -> None:
        """Forget the subscription: the frame that says so has been sent."""


class Subscription(Protocol):
    """One subscription that has started."""

    def close(self) -> None:
        """Send nothing more, not even a notification of the end."""

    def unsubscribed(self) -> None:
        """Called when the client has unsubscribed and will not resume. `close` follows."""

    def drained(self, frames: int, size_bytes: int) -> None:
        """Called with how many of the frames and bytes have left for the client."""

    async def judge(self, subscriber: Subscriber) -> None:
        """Continue with the caller's current scopes and claims. End if they do not allow it."""

    def figures(self) -> JsonObject:
        """Describe the subscription to the tenant's members: its source and its state."""


class Kind(Protocol):
    """Something that can be subscribed to."""

    @property
    def member(self) -> str:
        """The member of `subscribe` that names the source."""

    async def open(self, subscriber: Subscriber, message: Value, outlet: Outlet) -> Subscription:
        """Start a subscription, or raise why it cannot start. Frames may be sent before this
        returns.
        """


class Kinds:
    """The kinds of an installation."""

    def __init__(self, *kinds: Kind) -> None:
        self._by_member = {kind.member: kind for kind in kinds}

    def of(self, message: Value) -> Kind:
        """Return the kind of a `subscribe` message, or raise unless it names one source."""
        found = [kind for member, kind in self._by_member.items() if message.get(member)]
        if len(found) != 1:
            names = ", ".join(f"`{member}`" for member in self._by_member)
            raise InvalidBody(f"A subscription must name exactly one of: {names}.")
        return found[0]
