from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.tenants.webhooks.receivers import webhook_receiver

if TYPE_CHECKING:
    from tests.tenants.webhooks.receivers import WebhookReceiver


@pytest.fixture
def receiver() -> Iterator[WebhookReceiver]:
    """A tenant's server that confirms handshakes and accepts all requests."""
    with webhook_receiver() as running:
        yield running
