"""The text of emails."""

from __future__ import annotations

from email import message_from_bytes, policy
from uuid import UUID, uuid4

import pytest

from tenants.mail.letters import LinkTo, MailTemplate, write
from tenants.models import Purpose

FACTS = {
    "old_email": "old@example.test",
    "new_email": "new@example.test",
    "tenant": "Shop",
    "inviter": "Grace",
    "role": "viewer",
    "at": "1 May 2030 at 12:00",
    "address": "192.0.2.1",
}


@pytest.mark.parametrize("letter", list(MailTemplate))
def test_each_letter_is_complete_in_text_and_html(letter: MailTemplate) -> None:
    written = write(letter, "ada@example.test", FACTS, LinkTo(Purpose.RESET, uuid4()))
    assert written.subject
    assert "\n" not in written.subject
    assert len(written.text) > 100
    for form in (written.text, written.html):
        assert "{{" not in form
        assert "{%" not in form
        assert "  " not in written.text
    assert written.html.count("<p") >= written.text.count("\n\n") + 1


def test_what_strangers_choose_is_text_and_never_markup() -> None:
    facts = {**FACTS, "tenant": "<script>alert(1)</script> & sons"}
    written = write(
        MailTemplate.INVITATION, "ada@example.test", facts, LinkTo(Purpose.INVITATION, uuid4())
    )
    assert "<script>" not in written.html
    assert "&lt;script&gt;" in written.html
    assert "<script>alert(1)</script> & sons" in written.text


def test_a_link_is_the_same_however_often_it_is_written() -> None:
    about = UUID("01234567-89ab-7def-8123-456789abcdef")
    assert LinkTo(Purpose.RESET, about).url == LinkTo(Purpose.RESET, about).url
    assert LinkTo(Purpose.RESET, about).url != LinkTo(Purpose.VERIFY, about).url
    assert LinkTo(Purpose.RESET, about).url != LinkTo(Purpose.RESET, uuid4()).url


@pytest.mark.parametrize("name", ["a\u2028b", "a\u0085b", "x" * 100, "Łódź 🏭"])
def test_a_subject_is_one_line_whatever_the_name_of_the_tenant(name: str) -> None:
    facts = {**FACTS, "tenant": name}
    link = LinkTo(Purpose.INVITATION, uuid4())
    message = write(MailTemplate.INVITATION, "ada@example.test", facts, link).message()
    again = message_from_bytes(message.as_bytes(), policy=policy.default)
    assert again["Subject"] == " ".join(f"Invitation to {name}".split())
