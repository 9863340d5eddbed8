from __future__ import annotations

from django.apps import AppConfig


class FoundationConfig(AppConfig):
    name = "foundation"
    verbose_name = "Background tasks"
    default_auto_field = "django.db.models.BigAutoField"
