"""Reads the e-mails that the tests' worker has written to the mail directory."""

from __future__ import annotations

import re
from dataclasses import dataclass
from email import message_from_bytes, policy
from functools import lru_cache
from pathlib import Path

from django.db import connections
from django.db.models import Q

from foundation.environment import environment
from foundation.models import OutboxTask
from tests.waiting import wait_until

#: The first e-mail of a run waits until the worker has started, on a machine that may be busy.
TIMEOUT_S = 60.0
_LINK = re.compile(r"(http\S+)#token=([A-Za-z0-9_-]+)$", re.MULTILINE)


@dataclass(frozen=True)
class Mail:
    """An e-mail as its recipient reads it."""

    to: str
    subject: str
    text: str
    html: str

    @property
    def token(self) -> str:
        """The token of the e-mail's link."""
        match = _LINK.search(self.text)
        assert match is not None, self.text
        return match[2]

    @property
    def page(self) -> str:
        """The page of the console that the link opens."""
        match = _LINK.search(self.text)
        assert match is not None, self.text
        return match[1].rpartition("/")[2]


@lru_cache(maxsize=10_000)
def _read(path: Path) -> Mail:
    message = message_from_bytes(path.read_bytes(), policy=policy.default)
    text, html = message.get_body(("plain",)), message.get_body(("html",))
    assert text is not None
    assert html is not None
    return Mail(message["To"], message["Subject"], text.get_content(), html.get_content())


def mails_to(address: str) -> list[Mail]:
    """Return the e-mails to an address so far, oldest first."""
    folder = Path(environment().rillbase_email_url.removeprefix("dir://"))
    result = (_read(path) for path in sorted(folder.glob("*.eml")))
    return [mail for mail in result if mail.to == address]


def next_mail(address: str, subject: str, *, already: int = 0) -> Mail:
    """Wait for a further e-mail with this subject, beyond those that had already arrived."""

    def new_mail() -> list[Mail]:
        return [mail for mail in mails_to(address) if mail.subject == subject]

    wait_until(
        lambda: len(new_mail()) > already,
        what=f"a mail {subject!r} to {address}",
        timeout_s=TIMEOUT_S,
    )
    return new_mail()[-1]


def all_mails_to(address: str) -> list[Mail]:
    """Return the e-mails to an address after all tasks that may send one have ended."""
    wait_until(lambda: _all_are_sent(address), what="all mails to be sent")
    return mails_to(address)


def _all_are_sent(address: str) -> bool:
    concerned = Q(arguments__to=address) | Q(arguments__email=address)
    rows = OutboxTask.objects.using("relay").filter(name__startswith="tenants.mail.")
    try:
        return not rows.filter(concerned).exists()
    finally:
        connections["relay"].close()
