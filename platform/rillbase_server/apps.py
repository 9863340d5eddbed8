from __future__ import annotations

from django.apps import AppConfig


class RillbaseServerConfig(AppConfig):
    name = "rillbase_server"
    default_auto_field = "django.db.models.BigAutoField"
