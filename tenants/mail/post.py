"""Hand a letter to the task that will send it."""

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
    """Send a letter once the current transaction of `using` has committed.

    What is kept until then names the link by what it is about; its token is made when the mail is.
    """
    arguments: JsonObject = {
        "letter": letter.value,
        "to": to,
        "facts": dict(facts),
        "link": {"purpose": link.purpose.value, "about": str(link.about)} if link else None,
    }
    run_after_commit(SEND, arguments, tenant_id=tenant_id, using=using)
