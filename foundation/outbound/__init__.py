"""The one client for URLs that tenants choose; see `client` for the rules."""

from foundation.outbound.client import OutboundClient, OutboundResponse, outbound_client
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
    "InvalidResponse",
    "OutboundClient",
    "OutboundError",
    "OutboundResponse",
    "ResponseTooLarge",
    "TargetRefused",
    "TargetTimeout",
    "TargetUnreachable",
    "TargetUnusable",
    "TlsFailed",
    "outbound_client",
]
