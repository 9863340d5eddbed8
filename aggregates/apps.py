from __future__ import annotations

from django.apps import AppConfig


class AggregatesConfig(AppConfig):
    name = "aggregates"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register what is counted and cleaned here with the layers below."""
        # Models can be imported only now.
        from aggregates.definitions import cleaner  # noqa: PLC0415
        from aggregates.models import Aggregate  # noqa: PLC0415
        from tenants.purge import register_cleaner  # noqa: PLC0415
        from tenants.quotas import register_count  # noqa: PLC0415

        register_count("aggregates", Aggregate.objects.count)
        register_cleaner(cleaner.clean)
