"""The task that sends email, with a mail server that rejects it."""

from __future__ import annotations

import logging
import smtplib

import pytest

from tenants.mail.letters import MailTemplate
from tenants.mail.tasks import send
from tests.tenants.mail.smtp_server import SmtpServer

FACTS = {"new_email": "new@example.test"}


def _send() -> None:
    send(letter=MailTemplate.EMAIL_CHANGED, to="gone@example.test", facts=FACTS, link=None)


def test_a_mail_to_a_mailbox_that_does_not_exist_is_noted_and_dropped(
    settings_environment: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with SmtpServer(answers={"RCPT": "550 no such user"}) as server:
        settings_environment.setenv("RILLBASE_EMAIL_URL", f"smtp://127.0.0.1:{server.port}")
        _send()
    assert "550 no such user" in caplog.text
    assert caplog.records[-1].levelno == logging.WARNING


def test_a_temporary_rejection_fails_the_task_which_is_retried(
    settings_environment: pytest.MonkeyPatch,
) -> None:
    with SmtpServer(answers={"RCPT": "450 mailbox busy"}) as server:
        settings_environment.setenv("RILLBASE_EMAIL_URL", f"smtp://127.0.0.1:{server.port}")
        with pytest.raises(smtplib.SMTPRecipientsRefused):
            _send()
