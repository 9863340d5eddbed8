"""The one client for URLs that tenants choose; see `client` for the rules."""

from foundation.outbound.client import Answer, OutboundClient, outbound_client
from foundation.outbound.errors import (
    InvalidResponse,
    OutboundError,
    ResponseTooLarge,
    TargetRefused,
    TargetTimeout,
    TargetUnreachable,
    TargetUnusable,
    TlsFailed,
)

__all__ = [
    "Answer",
    "InvalidResponse",
    "OutboundClient",
    "OutboundError",
    "ResponseTooLarge",
    "TargetRefused",
    "TargetTimeout",
    "TargetUnreachable",
    "TargetUnusable",
    "TlsFailed",
    "outbound_client",
]
