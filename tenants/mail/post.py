"""Queue a mail for the task that sends it."""

from __future__ import annotations

from uuid import UUID

from foundation.json_types import JsonObject
from foundation.tasks import run_after_commit
from tenants.mail.letters import LinkTo, MailTemplate

SEND = "tenants.mail.send"


def post(
    letter: MailTemplate,
    to: str,
    *,
    link: LinkTo | None = None,
    tenant_id: UUID | None = None,
    using: str = "default",
    **facts: str,
) -> None:
    """Send a mail once the current transaction of `using` has committed.

    The queued task refers to the link by its row; the token is generated when the mail is rendered.
    """
    arguments: JsonObject = {
        "letter": letter.value,
        "to": to,
        "facts": dict(facts),
        "link": {"purpose": link.purpose.value, "about": str(link.about)} if link else None,
    }
    run_after_commit(SEND, arguments, tenant_id=tenant_id, using=using)
