"""Records when a credential was last used, at most once a minute.

A write per request would turn every read into a write. The stored time may lag by a minute, and a
process records a credential once a minute whatever the cached facts say. A database that accepts no
writes, because its disk is full or after a failover, must not cause the credential to be rejected:
then the time stays as it is.
"""

from __future__ import annotations

import datetime
import logging
from uuid import UUID

from django.db import DatabaseError, models
from django.utils import timezone

from foundation import failures
from tenants.credentials.cache import ShortCache
from tenants.models import ApiKey, PersonalToken, UserSession

INTERVAL = datetime.timedelta(minutes=1)

logger = logging.getLogger(__name__)

_noted: ShortCache[bool] = ShortCache(ttl_s=INTERVAL.total_seconds())


def note_key(key_id: UUID, last_used_at: datetime.datetime | None) -> None:
    """Record the use of an API key."""
    if _due(key_id, last_used_at):
        _write(ApiKey.unscoped.using("auth").filter(pk=key_id), "last_used_at")


def note_token(token_id: UUID, last_used_at: datetime.datetime | None) -> None:
    """Record the use of a personal token."""
    if _due(token_id, last_used_at):
        _write(PersonalToken.objects.using("auth").filter(pk=token_id), "last_used_at")


def note_session(session_id: UUID, last_used_at: datetime.datetime | None) -> None:
    """Record activity in a session."""
    if _due(session_id, last_used_at):
        _write(UserSession.objects.using("auth").filter(pk=session_id), "last_seen_at")


def _due(credential_id: UUID, last_used_at: datetime.datetime | None) -> bool:
    if last_used_at is not None and timezone.now() - last_used_at < INTERVAL:
        return False
    if _noted.get(credential_id):
        return False
    _noted.get_or_load(credential_id, lambda: True)
    return True


def _write(row: models.QuerySet[models.Model], column: str) -> None:
    try:
        row.update(**{column: timezone.now()})
    except DatabaseError as error:
        if failures.transient_error(error) is None:
            raise
        logger.info("the use of a credential was not recorded: %s", error)
