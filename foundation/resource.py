"""Base of the control plane's resources: a time-ordered id, a version, and two times."""

from __future__ import annotations

from django.db import models

from foundation.ids import uuid7


class Resource(models.Model):
    """An object with a URL in the API. `version` grows by one with each change; ETags use it."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    version = models.PositiveIntegerField(default=1, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        abstract = True

    def save_next_version(self) -> None:
        """Write the row as its next version. The caller holds the row's lock."""
        self.version += 1
        self.save()
