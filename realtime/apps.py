from __future__ import annotations

from django.apps import AppConfig


class RealtimeConfig(AppConfig):
    name = "realtime"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the app's quotas and cleaners with lower layers."""
        # Models are not available before this point.
        from realtime.clusters import cleaner, cluster_quota  # noqa: PLC0415
        from realtime.clusters.actions import LIMIT  # noqa: PLC0415
        from tenants.purge import register_cleaner  # noqa: PLC0415
        from tenants.quotas import register_count  # noqa: PLC0415

        register_count(LIMIT, cluster_quota.write_partitions)
        register_cleaner(cleaner.clean)
