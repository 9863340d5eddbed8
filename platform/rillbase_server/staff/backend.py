"""Login of staff, with the database role that may read all users.

Guessing is limited by the console's rate limits, with shared counters, and by the same gate for
password hashing.
"""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.backends import BaseBackend
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest

from foundation.errors import Unavailable
from foundation.limits import limiter
from tenants.api.account_forms import sign_in_limits
from tenants.credentials import passwords
from tenants.models.user import User, normal_email


class StaffBackend(BaseBackend):
    """Accept only active staff with the right password."""

    def authenticate(
        self,
        request: HttpRequest | None,
        username: str | None = None,
        password: str | None = None,
        **credentials: object,
    ) -> User | None:
        if not username or not password:
            return None
        email = normal_email(username)
        if not limiter().check(sign_in_limits(email)).allowed:
            raise PermissionDenied
        user = User.objects.using("staff").filter(email=email).first()
        try:
            right = passwords.is_right(user, password)
        except Unavailable as busy:
            raise PermissionDenied from busy
        return user if right and user is not None and user.is_active and user.is_staff else None

    def get_user(self, user_id: UUID) -> User | None:
        return User.objects.using("staff").filter(pk=user_id, is_active=True, is_staff=True).first()
