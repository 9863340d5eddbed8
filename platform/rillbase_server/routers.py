"""The default database connection of each model."""

from __future__ import annotations

from django.db import models

#: Apps whose tables only the staff admin uses.
STAFF_APPS = frozenset({"admin", "auth", "contenttypes", "sessions"})


class RoleRouter:
    """Use the staff role for the staff admin's tables; migrate only as the owner."""

    def db_for_read(self, model: type[models.Model], **hints: object) -> str | None:
        return "staff" if model._meta.app_label in STAFF_APPS else None

    def db_for_write(self, model: type[models.Model], **hints: object) -> str | None:
        return self.db_for_read(model)

    def allow_relation(
        self, first: models.Model, second: models.Model, **hints: object
    ) -> bool | None:
        """Allow relations between rows read by different roles: all use one database."""
        return True

    def allow_migrate(self, db: str, app_label: str, **hints: object) -> bool | None:
        return db == "owner"
