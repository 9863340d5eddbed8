"""Login of staff, over the database role that may see all users."""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.backends import BaseBackend
from django.contrib.auth.hashers import make_password
from django.http import HttpRequest

from tenants.models.user import User, normal_email


class StaffBackend(BaseBackend):
    """Accept active staff with the right password and nobody else."""

    def authenticate(
        self,
        request: HttpRequest | None,
        username: str | None = None,
        password: str | None = None,
        **credentials: object,
    ) -> User | None:
        if not username or not password:
            return None
        user = User.objects.using("staff").filter(email=normal_email(username)).first()
        if user is None:
            make_password(password)  # an unknown address takes as long as a wrong password
            return None
        allowed = user.check_password(password) and user.is_active and user.is_staff
        return user if allowed else None

    def get_user(self, user_id: UUID) -> User | None:
        return User.objects.using("staff").filter(pk=user_id, is_active=True, is_staff=True).first()
