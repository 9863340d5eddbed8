"""One message to one receiver: sign it, send it, note what came back."""

from __future__ import annotations

import time
from dataclasses import dataclass

from django.utils import timezone

from foundation.api.rendering import to_json
from foundation.json_types import JsonObject
from foundation.outbound import OutboundError, TargetRefused, outbound_client
from tenants.models.webhook import Webhook
from tenants.webhooks.secret import signing_secrets
from tenants.webhooks.signing import signed_headers

MAX_ANSWER_CHARS = 1000


@dataclass(frozen=True, slots=True)
class Attempt:
    """What one attempt brought: a status, or the reason why there is none."""

    status: int | None
    error: str
    answer: str
    duration_ms: int
    #: Whether the URL is one that may not be called, so that repeating is of no use.
    refused: bool = False

    @property
    def successful(self) -> bool:
        return self.status is not None and 200 <= self.status < 300  # noqa: PLR2004

    @property
    def summary(self) -> str:
        """Say in a few words why the attempt counts as failed."""
        return self.error or f"The receiver answered with status {self.status}."


def send(webhook: Webhook, message_id: str, payload: JsonObject) -> Attempt:
    """Send a message. Whatever goes wrong out there is a result, not an exception."""
    now = timezone.now()
    body = to_json(payload)
    headers = signed_headers(signing_secrets(webhook, now), message_id, int(now.timestamp()), body)
    began = time.monotonic()
    try:
        answer = outbound_client().request("POST", webhook.url, headers=headers, body=body)
    except OutboundError as error:
        return Attempt(
            None, f"{error.code}: {error}", "", _ms(began), isinstance(error, TargetRefused)
        )
    return Attempt(answer.status, "", _text(answer.body), _ms(began))


def message_id(event_id: object) -> str:
    """Return the id by which a receiver tells one event from another, in all attempts alike."""
    return f"msg_{event_id}"


def _ms(began: float) -> int:
    return round((time.monotonic() - began) * 1000)


def _text(body: bytes) -> str:
    # NUL cannot be stored as text.
    return (
        body[: 4 * MAX_ANSWER_CHARS].decode(errors="replace").replace("\0", "�")[:MAX_ANSWER_CHARS]
    )
