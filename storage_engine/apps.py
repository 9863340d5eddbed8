from __future__ import annotations

from django.apps import AppConfig


class StorageEngineConfig(AppConfig):
    name = "storage_engine"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register what is counted and cleaned here with the layers below."""
        # Models can be imported only now.
        from storage_engine.models import Topic  # noqa: PLC0415
        from storage_engine.topics import cleaner  # noqa: PLC0415
        from tenants.purge import register_cleaner  # noqa: PLC0415
        from tenants.quotas import register_count  # noqa: PLC0415

        register_count("topics", Topic.objects.count)
        register_cleaner(cleaner.clean)
