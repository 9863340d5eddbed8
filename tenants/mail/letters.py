"""The mails: one text template each, from which the HTML form is also generated.

A template's first line is the subject, blank lines separate its paragraphs, and a paragraph that
consists of the link becomes a button in HTML. Names that strangers choose appear only in mails
bounded by a quota: the sign-up form must not be a way to send advertisements.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from enum import StrEnum
from urllib.parse import urlsplit
from uuid import UUID

from django.template.loader import render_to_string

from foundation.environment import environment
from tenants import links
from tenants.models import Purpose

_FOLDER = "tenants/mail"


class MailTemplate(StrEnum):
    """The mail templates."""

    VERIFY_EMAIL = "verify_email"
    ALREADY_REGISTERED = "already_registered"
    RESET_PASSWORD = "reset_password"
    PASSWORD_CHANGED = "password_changed"
    CHANGE_EMAIL = "change_email"
    EMAIL_CHANGED = "email_changed"
    INVITATION = "invitation"
    WEBHOOK_DISABLED = "webhook_disabled"


@dataclass(frozen=True, slots=True)
class LinkTo:
    """The link that a mail contains, by the row it refers to."""

    purpose: Purpose
    about: UUID

    @property
    def url(self) -> str:
        return links.url(self.purpose, self.about)


@dataclass(frozen=True, slots=True)
class RenderedMail:
    """A rendered message, ready to send."""

    to: str
    subject: str
    text: str
    html: str
    link: str

    def message(self) -> EmailMessage:
        """Return the message with a text and an HTML form."""
        sender = environment().rillbase_email_from
        message = EmailMessage()
        message["From"] = sender
        message["To"] = self.to
        message["Subject"] = self.subject
        message["Date"] = formatdate()
        message["Message-ID"] = make_msgid(
            domain=urlsplit(environment().rillbase_public_url).hostname
        )
        message["Auto-Submitted"] = "auto-generated"
        message.set_content(self.text)
        message.add_alternative(self.html, subtype="html")
        return message


def write(
    letter: MailTemplate, to: str, facts: Mapping[str, str], link: LinkTo | None
) -> RenderedMail:
    """Render a mail template."""
    url = link.url if link else ""
    context = {**facts, "link": url, "site": environment().rillbase_public_url, "to": to}
    subject, _, text = render_to_string(f"{_FOLDER}/{letter}.txt", context).partition("\n")
    paragraphs = [" ".join(part.split()) for part in text.split("\n\n") if part.strip()]
    html = render_to_string(
        f"{_FOLDER}/letter.html", {"subject": subject, "paragraphs": paragraphs, "link": url}
    )
    return RenderedMail(to, " ".join(subject.split()), text.strip() + "\n", html, url)
