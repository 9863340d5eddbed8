"""Fields and limits shared by the account calls."""

from __future__ import annotations

import hashlib
from typing import Any

from django.core.validators import RegexValidator
from rest_framework import serializers

from foundation.limits import Limit
from tenants.credentials.passwords import MAX_PASSWORD_CHARS
from tenants.links import TOKEN_PATTERN
from tenants.models.user import normal_email
from tenants.quotas import caller_network


class AddressField(serializers.EmailField):
    """An email address, in the form in which addresses are compared."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=254, **options)

    def to_internal_value(self, data: Any) -> str:
        return normal_email(super().to_internal_value(data))


class PasswordField(serializers.CharField):
    """A password: any characters, none of them trimmed."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=MAX_PASSWORD_CHARS, trim_whitespace=False, **options)


class LinkTokenField(serializers.CharField):
    """The part of a mailed link after `#token=`."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=100, **options)
        self.validators.append(
            RegexValidator(
                rf"\A{TOKEN_PATTERN}\Z", "The link is not valid. Copy all of it.", "invalid_token"
            )
        )


def sign_in_limits(email: str) -> list[Limit]:
    """Return the limits on guessing passwords: per client address, and per account."""
    return [
        Limit("sign-in-address", caller_network(), 1 / 3, 20),
        Limit("sign-in-email", _digest(email), 1 / 30, 15),
    ]


def mail_limits(email: str) -> list[Limit]:
    """Return the limits on mail that anyone can trigger. They are the same for addresses with and
    without an account.
    """
    return [
        Limit("mail-address", caller_network(), 1 / 30, 20),
        Limit("mail-recipient", _digest(email), 1 / 300, 5),
    ]


def link_limits() -> list[Limit]:
    """Return the limits on trying links."""
    return [Limit("link-address", caller_network(), 1, 20)]


def password_check_limits(user_id: str) -> list[Limit]:
    """Return the limits on password checks of a signed-in user."""
    return [Limit("password-check", user_id, 1 / 30, 10)]


def invitation_limits(tenant_id: str) -> list[Limit]:
    """Return the limits on invitations, whose mails are unsolicited."""
    return [Limit("invitations", tenant_id, 1 / 60, 30)]


def _digest(email: str) -> str:
    return hashlib.sha256(email.encode()).hexdigest()[:32]
