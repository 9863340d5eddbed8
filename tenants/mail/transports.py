"""Mail transports: the log, a directory, or an SMTP server.

`RILLBASE_EMAIL_URL` selects one. The first two are for development and tests: a link in the log can
be clicked, a file can be read.
"""

from __future__ import annotations

import logging
import smtplib
import ssl
from functools import lru_cache
from pathlib import Path
from typing import Protocol
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from foundation.environment import environment
from foundation.ids import uuid7
from tenants.mail.letters import RenderedMail

TIMEOUT_S = 10.0
_DEFAULT_PORTS = {"smtp": 25, "smtps": 465}
_PERMANENT = range(500, 600)

logger = logging.getLogger(__name__)


class MailRefused(Exception):
    """The mail server rejected this mail permanently: retrying is useless."""


class Transport(Protocol):
    """Sends mails."""

    def send(self, written: RenderedMail) -> None:
        """Send one mail; raise `MailRefused` or, if a retry may succeed, another error."""


class LogTransport:
    """Writes the subject and link to the log."""

    def send(self, written: RenderedMail) -> None:
        fields = {"mail_to": written.to, "link": written.link}
        logger.info("mail: %s", written.subject, extra={k: v for k, v in fields.items() if v})


class DirectoryTransport:
    """Writes each mail to a separate file, which appears complete or not at all."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def send(self, written: RenderedMail) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        name = str(uuid7())
        draft = self._directory / f".{name}"
        draft.write_bytes(written.message().as_bytes())
        draft.replace(self._directory / f"{name}.eml")


class SmtpTransport:
    """Sends by SMTP, one connection per mail. With `starttls` never in clear text."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        user: str = "",
        password: str = "",
        starttls: bool = False,
        tls: bool = False,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._host = host
        self._port = port
        self._user = user
        self._password = password
        self._starttls = starttls
        self._tls = tls
        self._timeout_s = timeout_s

    def send(self, written: RenderedMail) -> None:
        with self._connect() as server:
            if self._starttls:
                server.starttls(context=ssl.create_default_context())
            if self._user:
                server.login(self._user, self._password)
            try:
                server.send_message(written.message())
            except smtplib.SMTPRecipientsRefused as error:
                code, reason = error.recipients[written.to]
                _raise_if_permanent(code, reason)
                raise
            except smtplib.SMTPResponseException as error:
                _raise_if_permanent(error.smtp_code, error.smtp_error)
                raise

    def _connect(self) -> smtplib.SMTP:
        if self._tls:
            return smtplib.SMTP_SSL(
                self._host,
                self._port,
                timeout=self._timeout_s,
                context=ssl.create_default_context(),
            )
        return smtplib.SMTP(self._host, self._port, timeout=self._timeout_s)


def _raise_if_permanent(code: int, reason: bytes | str) -> None:
    if code in _PERMANENT:
        words = reason.decode(errors="replace") if isinstance(reason, bytes) else reason
        raise MailRefused(f"{code} {words}")


def transport_of(url: str) -> Transport:
    """Return the transport of a URL; raise `ValueError` if the URL is not valid."""
    parts = urlsplit(url)
    match parts.scheme:
        case "log":
            return LogTransport()
        case "dir":
            if not parts.path or parts.netloc:
                raise ValueError("a mail directory has the form dir:///absolute/path")
            return DirectoryTransport(Path(unquote(parts.path)))
        case "smtp" | "smtps":
            return _smtp(parts)
        case _:
            raise ValueError(f"mails cannot be sent with the scheme {parts.scheme or url!r}")


def _smtp(parts: SplitResult) -> SmtpTransport:
    if not parts.hostname:
        raise ValueError("a mail server has the form smtp://user:password@host:587?tls=1")
    options = parse_qs(parts.query, strict_parsing=bool(parts.query))
    unknown = set(options) - {"tls"}
    tls = options.get("tls", ["0"])[-1]
    if unknown or tls not in ("0", "1"):
        raise ValueError("the only option of a mail server is tls=0 or tls=1")
    return SmtpTransport(
        parts.hostname,
        parts.port or _DEFAULT_PORTS[parts.scheme],
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        starttls=parts.scheme == "smtp" and tls == "1",
        tls=parts.scheme == "smtps",
    )


@lru_cache(maxsize=4)
def _transport_for(url: str) -> Transport:
    return transport_of(url)


def transport() -> Transport:
    """Return the transport of this installation."""
    return _transport_for(environment().rillbase_email_url)
