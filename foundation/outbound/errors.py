"""Errors of calls to tenants' URLs, grouped by how callers handle them.

The messages may be shown to the tenant: they never name an address that a host resolved to, so
that tenants cannot map the installation's internal network by registering URLs.
"""

from __future__ import annotations

from typing import ClassVar


class OutboundError(Exception):
    """Base of all. `code` is stable and goes into delivery logs."""

    code: ClassVar[str] = "outbound_failed"
    #: Whether the target has an address that is not public: what was found there is not shown.
    is_internal = False


class TargetRefused(OutboundError):
    """The URL may not be called. Retrying does not help."""

    code = "target_refused"


class TargetUnreachable(OutboundError):
    """No connection, or it broke. Worth retrying later."""

    code = "target_unreachable"


class TlsFailed(TargetUnreachable):
    """The certificate is not valid for the host, or the TLS handshake failed."""

    code = "tls_failed"


class TargetTimeout(OutboundError):
    """The whole exchange took longer than allowed. Worth retrying later."""

    code = "target_timeout"


class InvalidResponse(OutboundError):
    """The response is not HTTP, or has an encoding that was not requested."""

    code = "invalid_response"


class ResponseTooLarge(OutboundError):
    """The response is larger than allowed."""

    code = "response_too_large"


class TargetUnusable(OutboundError):
    """An internal target failed. The cause stays hidden: it would reveal what listens there."""

    code = "target_unusable"
    is_internal = True

    def __init__(self) -> None:
        super().__init__("The target did not respond as expected.")
