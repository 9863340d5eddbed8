"""Mail sent to an address when a sign-up or a link is requested for it.

The caller of the API must not learn whether an address has an account, neither from the response
nor from its timing. So a request only records what was requested, in the same way for every
address, and a task looks up the account and decides. Only the owner of the mailbox sees the
outcome.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from django.db import transaction

from foundation.tasks import run_after_commit, task
from tenants import links
from tenants.mail import LinkTo, MailTemplate, post
from tenants.models import Purpose, User

ANSWER = "tenants.mail.answer_address"


class AddressRequest(StrEnum):
    """What was requested for an address."""

    SIGN_UP = "sign_up"
    VERIFY = "verify"
    RESET = "reset"


@dataclass(frozen=True, slots=True)
class AddressMail:
    """The mail that is sent to the address, and the link that it contains."""

    letter: MailTemplate
    purpose: Purpose | None = None


_VERIFY = AddressMail(MailTemplate.VERIFY_EMAIL, Purpose.VERIFY)
_RESET = AddressMail(MailTemplate.RESET_PASSWORD, Purpose.RESET)


def decide(request: AddressRequest, user: User | None) -> AddressMail | None:
    """Return the mail to send to the address, if any."""
    if user is None or not user.is_active:
        return None
    if request is AddressRequest.RESET:
        return _RESET
    if user.email_verified_at is None:
        return _VERIFY
    return (
        AddressMail(MailTemplate.ALREADY_REGISTERED) if request is AddressRequest.SIGN_UP else None
    )


def note(request: AddressRequest, email: str) -> None:
    """Schedule the reply to run after the current transaction of the sign-in role commits."""
    run_after_commit(ANSWER, {"wish": request.value, "email": email}, using="auth")


@task(name=ANSWER)
def answer(wish: str, email: str) -> None:
    """Look up the account and send the mail that applies."""
    with transaction.atomic(using="auth"):
        user = User.objects.using("auth").filter(email=email).first()
        reply = decide(AddressRequest(wish), user)
        if user is None or reply is None:
            return
        link = None
        if reply.purpose is not None:
            proof = links.issue(user.id, reply.purpose)
            link = LinkTo(reply.purpose, proof.id)
        post(reply.letter, email, link=link, using="auth")
