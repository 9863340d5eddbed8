"""Users, who log in by email address and may be members of many tenants, and their sessions."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.db import models

from foundation.ids import uuid7


def normal_email(address: str) -> str:
    """Return the form under which addresses are stored and compared."""
    return address.strip().lower()


class UserManager(BaseUserManager["User"]):
    """Reads users over a connection that may see them: the user's own, or that of a tenant."""

    def get_by_natural_key(self, username: str | None) -> User:
        return self.using("auth").get(email=normal_email(username or ""))


class User(AbstractBaseUser):
    """A person with a login. Staff may use the staff admin; this grants no access to tenants."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    email = models.EmailField(unique=True, max_length=254)
    name = models.CharField(max_length=100, blank=True)
    is_active = models.BooleanField(default=True)
    is_staff = models.BooleanField(default=False)
    version = models.PositiveIntegerField(default=1, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    email_verified_at = models.DateTimeField(null=True, blank=True)

    objects: ClassVar[UserManager] = UserManager()

    USERNAME_FIELD = "email"

    def __str__(self) -> str:
        return self.email

    def has_perm(self, permission: str, thing: object = None) -> bool:
        """Grant staff every permission of the staff admin; database roles restrict them further."""
        return self.is_active and self.is_staff

    def has_module_perms(self, app_label: str) -> bool:
        return self.is_active and self.is_staff


class Purpose(StrEnum):
    """What a link is for; all but `SIGN_IN` are mailed."""

    VERIFY = "verify"
    RESET = "reset"
    CHANGE = "change"
    INVITATION = "invitation"
    #: Printed by the launcher on a development machine, for its local user.
    SIGN_IN = "sign_in"


PROOFS = (Purpose.VERIFY, Purpose.RESET, Purpose.CHANGE, Purpose.SIGN_IN)


class EmailProof(models.Model):
    """A single-use link: to verify or change the address, to set a password, to sign in."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    user = models.ForeignKey(User, on_delete=models.CASCADE)
    purpose = models.CharField(max_length=10, choices=[(p.value, p.value) for p in PROOFS])
    #: The new address, if the purpose is to change it.
    email = models.EmailField(max_length=254, blank=True, db_default="")
    token_hash = models.BinaryField(unique=True, max_length=32)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(db_index=True)
    used_at = models.DateTimeField(null=True, blank=True)


class UserSession(models.Model):
    """One signed-in browser. Only a hash of the cookie's value is kept."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="sessions")
    token_hash = models.BinaryField(unique=True, max_length=32)
    address = models.GenericIPAddressField(null=True)
    user_agent = models.CharField(max_length=300, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    last_seen_at = models.DateTimeField()
    expires_at = models.DateTimeField(db_index=True)
