"""One attempt to deliver a message: sign it, send it, record the result."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from django.utils import timezone

from foundation.api.rendering import to_json
from foundation.json_types import JsonObject
from foundation.outbound import (
    InvalidResponse,
    OutboundError,
    OutboundResponse,
    TargetRefused,
    TargetUnusable,
    outbound_client,
)
from foundation.outbound.addresses import is_plain_loopback, parse_address
from tenants.models.webhook import Webhook
from tenants.webhooks.signing import signed_headers, signing_secrets

MAX_ANSWER_CHARS = 1000
NOT_PROVED = "The receiver did not echo the challenge."


@dataclass(frozen=True, slots=True)
class DeliveryAttempt:
    """The result of one attempt: a status, or the reason why there is none."""

    status: int | None
    error: str
    answer: str
    duration_ms: int
    #: Whether the URL may not be called, so that a retry is useless.
    refused: bool = False

    @property
    def successful(self) -> bool:
        return self.status is not None and 200 <= self.status < 300  # noqa: PLR2004

    @property
    def summary(self) -> str:
        """Return a short reason why the attempt counts as failed."""
        return self.error or f"The receiver responded with status {self.status}."


def send(webhook: Webhook, message_id: str, payload: JsonObject) -> DeliveryAttempt:
    """Deliver a message. Any failure to do so is a result, not an exception."""
    headers, body = _signed_request(webhook, message_id, payload)
    began = time.monotonic()
    try:
        answer = outbound_client().request("POST", webhook.url, headers=headers, body=body)
    except OutboundError as error:
        if is_hidden(webhook.url, is_internal=error.is_internal):
            error = TargetUnusable()
        return _failed_attempt(error, began)
    attempt = DeliveryAttempt(answer.status, "", _text(answer.body), _ms(began))
    if not is_hidden(webhook.url, is_internal=answer.is_internal):
        return attempt
    return (
        replace(attempt, answer="")
        if attempt.successful
        else _failed_attempt(TargetUnusable(), began)
    )


def prove(
    webhook: Webhook, message_id: str, payload: JsonObject, is_proof: Callable[[str], bool]
) -> str | None:
    """Send a message whose response must be a proof; return what is wrong, or None."""
    headers, body = _signed_request(webhook, message_id, payload)

    def check(answer: OutboundResponse) -> None:
        if not answer.successful:
            raise InvalidResponse(f"The receiver responded with status {answer.status}.")
        if not is_proof(_text(answer.body)):
            raise InvalidResponse(NOT_PROVED)

    try:
        outbound_client().probe("POST", webhook.url, check, headers=headers, body=body)
    except InvalidResponse as wrong:
        return str(wrong)
    except TargetUnusable:
        return NOT_PROVED
    except OutboundError as error:
        return f"{error.code}: {error}"
    return None


def _signed_request(
    webhook: Webhook, message_id: str, payload: JsonObject
) -> tuple[Mapping[str, str], bytes]:
    now, body = timezone.now(), to_json(payload)
    secrets = signing_secrets(webhook, now)
    return signed_headers(secrets, message_id, int(now.timestamp()), body), body


def is_hidden(url: str, *, is_internal: bool) -> bool:
    """Return whether the tenant may not see a target's response.

    A receiver on this machine that was registered as such has proved by its handshake that it
    expects the deliveries. Another name may have resolved to a different address during the
    handshake.
    """
    host = urlsplit(url).hostname or ""
    address = parse_address(host)
    names_loopback = host == "localhost" or (address is not None and is_plain_loopback(address))
    return is_internal and not names_loopback


def _failed_attempt(error: OutboundError, began: float) -> DeliveryAttempt:
    is_refused = isinstance(error, TargetRefused)
    duration_ms = 0 if isinstance(error, TargetUnusable) else _ms(began)
    return DeliveryAttempt(None, f"{error.code}: {error}", "", duration_ms, is_refused)


def message_id(event_id: object) -> str:
    """Return the id by which a receiver identifies an event, the same in all attempts."""
    return f"msg_{event_id}"


def _ms(began: float) -> int:
    return round((time.monotonic() - began) * 1000)


def _text(body: bytes) -> str:
    # NUL cannot be stored as text.
    return (
        body[: 4 * MAX_ANSWER_CHARS].decode(errors="replace").replace("\0", "�")[:MAX_ANSWER_CHARS]
    )
