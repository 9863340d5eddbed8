from __future__ import annotations

from django.apps import AppConfig


class TenantsConfig(AppConfig):
    name = "tenants"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Record errors of lower layers, and announce credential changes."""
        # Models are not available before this point.
        from foundation.tasks.failures import on_dead_letter  # noqa: PLC0415
        from tenants import error_log  # noqa: PLC0415
        from tenants.credentials import changes  # noqa: PLC0415

        on_dead_letter(error_log.note_dead_task)
        changes.connect_signals()
