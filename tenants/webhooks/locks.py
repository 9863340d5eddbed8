"""One worker at a time for each webhook.

An advisory transaction lock is released however its holder ends, and unlike a lock on the row it
lets the tenant change or delete the webhook while a delivery is under way.
"""

from __future__ import annotations

from uuid import UUID

from django.db import connections


def try_lock(webhook_id: UUID) -> bool:
    """Try to take the webhook's lock until the end of the transaction."""
    # The lower half of the id is random; the upper half is the time.
    number = int.from_bytes(webhook_id.bytes[8:], "big", signed=True)
    with connections["default"].cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", (number,))
        row = cursor.fetchone()
    return bool(row and row[0])
