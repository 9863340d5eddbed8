"""Notifies all server processes of credential changes, so that they take effect at once.

Each process caches credentials for up to a second, whether or not it has connections of their
tenant, so these messages go to all processes. Rows are saved and deleted in many places, including
the staff admin; the signals of their models are the one place that all of these pass.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from uuid import UUID

from django.db import models, transaction
from django.db.models.signals import post_delete, post_save
from django.utils import timezone

from foundation import server_messages
from foundation.json_types import JsonValue
from tenants.models import (
    ApiKey,
    Issuer,
    Membership,
    PersonalToken,
    Quota,
    Tenant,
    User,
    UserSession,
)

MESSAGE = "credentials.changed"


class CredentialSubject(StrEnum):
    """The kind of credential that changed."""

    KEY = "key"
    TOKEN = "token"
    SESSION = "session"
    #: A user, or a user's membership in a tenant.
    USER = "user"
    #: A tenant, its limits or its issuers.
    TENANT = "tenant"


@dataclass(frozen=True, slots=True)
class CredentialChanges:
    """Identifiers of the credentials that have changed."""

    #: Public ids.
    keys: set[str] = field(default_factory=set)
    tokens: set[str] = field(default_factory=set)
    #: Hashes of cookies, as hex.
    sessions: set[str] = field(default_factory=set)
    users: set[UUID] = field(default_factory=set)
    tenants: set[UUID] = field(default_factory=set)

    def add(self, subject: JsonValue, name: JsonValue) -> None:
        """Add an identifier from a message, or raise `ValueError`."""
        match CredentialSubject(str(subject)):
            case CredentialSubject.KEY:
                self.keys.add(str(name))
            case CredentialSubject.TOKEN:
                self.tokens.add(str(name))
            case CredentialSubject.SESSION:
                self.sessions.add(str(name))
            case CredentialSubject.USER:
                self.users.add(UUID(str(name)))
            case CredentialSubject.TENANT:
                self.tenants.add(UUID(str(name)))


def connect_signals() -> None:
    """Announce credential changes from now on."""
    for saved in (ApiKey, Issuer, PersonalToken, Membership, User, Tenant, Quota):
        post_save.connect(_on_save, sender=saved)
    for deleted in (Issuer, Membership, User, UserSession, Quota):
        post_delete.connect(_on_delete, sender=deleted)


def _on_save(instance: models.Model, *, created: bool, using: str, **_: object) -> None:
    # A new row is in no cache, except what a tenant had none of until then.
    if not created or isinstance(instance, Issuer | Quota):
        _announce(instance, using)


def _on_delete(instance: models.Model, *, using: str, **_: object) -> None:
    # Expired sessions are rejected anyway, and are deleted in bulk.
    if not isinstance(instance, UserSession) or instance.expires_at > timezone.now():
        _announce(instance, using)


def _announce(instance: models.Model, using: str) -> None:
    subject, name = _name_of(instance)
    message: dict[str, JsonValue] = {"type": MESSAGE, "subject": subject.value, "name": name}
    transaction.on_commit(
        partial(server_messages.send, server_messages.SERVERS, message), using=using, robust=True
    )


def _name_of(instance: models.Model) -> tuple[CredentialSubject, str]:
    match instance:
        case ApiKey():
            return CredentialSubject.KEY, instance.key_id
        case PersonalToken():
            return CredentialSubject.TOKEN, instance.key_id
        case UserSession():
            return CredentialSubject.SESSION, bytes(instance.token_hash).hex()
        case Membership():
            return CredentialSubject.USER, str(instance.user_id)
        case User():
            return CredentialSubject.USER, str(instance.pk)
        case Issuer() | Quota():
            return CredentialSubject.TENANT, str(instance.tenant_id)
        case Tenant():
            return CredentialSubject.TENANT, str(instance.pk)
        case _:
            raise TypeError(f"{type(instance).__name__} is not a credential")
