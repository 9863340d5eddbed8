"""Mails to users: queued in the transaction they report on, sent by a task after commit."""

from __future__ import annotations

from tenants.mail.letters import LinkTo, MailTemplate
from tenants.mail.post import post

__all__ = ["LinkTo", "MailTemplate", "post"]
