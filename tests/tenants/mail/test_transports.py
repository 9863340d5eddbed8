"""How emails leave the installation."""

from __future__ import annotations

import logging
import smtplib
import ssl
from email import message_from_bytes, policy
from pathlib import Path
from uuid import uuid4

import pytest

from tenants.mail.letters import LinkTo, MailTemplate, RenderedMail, write
from tenants.mail.transports import MailRefused, transport_of
from tenants.models import Purpose
from tests.foundation.outbound.servers import Authority
from tests.own_valkey import free_port
from tests.tenants.mail.smtp_server import SmtpServer

TO = "ada@example.test"


def _letter() -> RenderedMail:
    return write(MailTemplate.RESET_PASSWORD, TO, {}, LinkTo(Purpose.RESET, uuid4()))


def test_a_mail_server_gets_the_mail_and_the_login() -> None:
    letter = _letter()
    with SmtpServer() as server:
        transport_of(f"smtp://us%40er:p%3Aw@127.0.0.1:{server.port}").send(letter)
    assert server.recipients == [TO]
    assert server.logins == [("us@er", "p:w")]
    message = message_from_bytes(server.messages[0], policy=policy.default)
    assert message["To"] == TO
    assert message["From"] == "Rillbase <rillbase@localhost>"
    assert message["Auto-Submitted"] == "auto-generated"
    assert message.get_content_type() == "multipart/alternative"
    text = message.get_body(("plain",))
    assert text is not None
    assert letter.link in text.get_content().splitlines()


def test_without_a_user_there_is_no_login() -> None:
    with SmtpServer() as server:
        transport_of(f"smtp://127.0.0.1:{server.port}").send(_letter())
    assert (len(server.messages), server.logins) == (1, [])


def test_a_mailbox_that_does_not_exist_is_not_tried_again() -> None:
    with (
        SmtpServer(answers={"RCPT": "550 no such user"}) as server,
        pytest.raises(MailRefused, match="550 no such user"),
    ):
        transport_of(f"smtp://127.0.0.1:{server.port}").send(_letter())
    assert server.messages == []


@pytest.mark.parametrize("command", ["RCPT", "MAIL", "DATA"])
def test_a_server_that_is_busy_is_tried_again(command: str) -> None:
    with (
        SmtpServer(answers={command: "451 try later"}) as server,
        pytest.raises(smtplib.SMTPException) as busy,
    ):
        transport_of(f"smtp://127.0.0.1:{server.port}").send(_letter())
    assert not isinstance(busy.value, MailRefused)
    assert server.messages == []


def test_a_wrong_login_is_a_matter_of_settings_and_tried_again() -> None:
    with (
        SmtpServer(answers={"AUTH": "535 wrong"}) as server,
        pytest.raises(smtplib.SMTPAuthenticationError),
    ):
        transport_of(f"smtp://a:b@127.0.0.1:{server.port}").send(_letter())
    assert server.messages == []


def test_with_tls_nothing_is_sent_in_clear_text() -> None:
    with SmtpServer() as server, pytest.raises(smtplib.SMTPNotSupportedError):
        transport_of(f"smtp://a:b@127.0.0.1:{server.port}?tls=1").send(_letter())
    assert (server.messages, server.logins) == ([], [])


@pytest.fixture
def certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """A certificate for `localhost` from an authority that this test's clients trust."""
    authority = Authority(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    return authority.server_context("localhost", tmp_path)


def test_smtps_speaks_tls_from_the_first_byte(certificate: ssl.SSLContext) -> None:
    with SmtpServer(tls=certificate) as server:
        transport_of(f"smtps://us%40er:p%3Aw@localhost:{server.port}").send(_letter())
    assert (len(server.messages), server.logins) == (1, [("us@er", "p:w")])
    assert server.overheard == []


def test_starttls_precedes_login_and_mail(certificate: ssl.SSLContext) -> None:
    with SmtpServer(starttls=certificate) as server:
        transport_of(f"smtp://us%40er:p%3Aw@localhost:{server.port}?tls=1").send(_letter())
    assert (len(server.messages), server.logins) == (1, [("us@er", "p:w")])
    assert server.overheard == ["EHLO", "STARTTLS"]


@pytest.mark.parametrize("url", ["smtps://a:b@{host}:{port}", "smtp://a:b@{host}:{port}?tls=1"])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_certificate_of_another_name_or_authority_gets_no_login(
    certificate: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch, host: str, url: str
) -> None:
    if host == "localhost":
        monkeypatch.delenv("SSL_CERT_FILE")
    is_smtps = url.startswith("smtps")
    server = SmtpServer(tls=certificate) if is_smtps else SmtpServer(starttls=certificate)
    with server, pytest.raises(ssl.SSLCertVerificationError):
        transport_of(url.format(host=host, port=server.port)).send(_letter())
    assert (server.messages, server.logins) == ([], [])


def test_an_unavailable_mail_server_is_retried() -> None:
    with pytest.raises(OSError, match="refused"):
        transport_of(f"smtp://127.0.0.1:{free_port()}").send(_letter())


def test_a_directory_gets_a_file_for_each_mail(tmp_path: Path) -> None:
    transport = transport_of(f"dir://{tmp_path}/new%20mails")
    transport.send(_letter())
    transport.send(_letter())
    files = list((tmp_path / "new mails").iterdir())
    assert [file.suffix for file in files] == [".eml", ".eml"]


def test_the_log_shows_a_link_that_can_be_clicked(caplog: pytest.LogCaptureFixture) -> None:
    letter = _letter()
    with caplog.at_level(logging.INFO):
        transport_of("log://").send(letter)
    record = caplog.records[-1]
    assert record.getMessage() == "mail: Set a new password"
    assert record.__dict__["link"] == letter.link
    assert record.__dict__["mail_to"] == TO


@pytest.mark.parametrize(
    "url",
    [
        "",
        "sendmail://",
        "dir://relative/path",
        "dir://",
        "smtp://",
        "smtp://host?tls=yes",
        "smtp://host?starttls=1",
        "smtp://host:notaport",
    ],
)
def test_a_transport_that_does_not_exist_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"mail|port|query"):
        transport_of(url)
