"""Mails to people: posted in the transaction that they tell of, sent by a task after its commit."""

from __future__ import annotations

from tenants.mail.letters import LinkTo, MailTemplate
from tenants.mail.post import post

__all__ = ["LinkTo", "MailTemplate", "post"]
