"""The task that sends mail. Running it twice sends the same mail with the same link twice."""

from __future__ import annotations

import logging
from uuid import UUID

from foundation.tasks import task
from tenants.mail.letters import LinkTo, MailTemplate, write
from tenants.mail.post import SEND
from tenants.mail.transports import MailRefused, transport
from tenants.models import Purpose

logger = logging.getLogger(__name__)


@task(name=SEND)
def send(letter: str, to: str, facts: dict[str, str], link: dict[str, str] | None) -> None:
    """Render a mail and pass it to the mail transport."""
    target = LinkTo(Purpose(link["purpose"]), UUID(link["about"])) if link else None
    try:
        transport().send(write(MailTemplate(letter), to, facts, target))
    except MailRefused as error:
        # A mailbox that does not exist cannot be fixed; other failures are retried.
        logger.warning("a mail was rejected: %s", error, extra={"letter": letter, "mail_to": to})
