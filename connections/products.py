"""What products register with the connection layer."""

from __future__ import annotations

from dataclasses import dataclass

from connections.message_calls import MessageCalls
from connections.subscriptions import SubscriptionKinds


@dataclass(frozen=True, slots=True)
class Products:
    kinds: SubscriptionKinds
    calls: MessageCalls
