"""Expired rows are reported once, or removed; others stay."""

from __future__ import annotations

import datetime
import os
import secrets
from collections.abc import Callable

import pytest
from django.utils import timezone

from foundation.ids import uuid7
from foundation.models import CallProgress, IdempotencyRecord
from foundation.scope import scoped
from tenants.models import (
    ApiKey,
    AuditEntry,
    EmailProof,
    Invitation,
    PersonalToken,
    UserSession,
    Webhook,
    WebhookDelivery,
)
from tenants.roles import Role
from tenants.sweeps import expiry, retention
from tests.make import TenantAccount, make_key, make_tenant, make_user, unique

HOUR = datetime.timedelta(hours=1)
MINUTE = datetime.timedelta(minutes=1)
DAY = datetime.timedelta(days=1)


def _ago(time: datetime.timedelta) -> datetime.datetime:
    return timezone.now() - time


def _actions(account: TenantAccount, action: str) -> int:
    rows = AuditEntry.unscoped.using("relay").filter(tenant_id=account.tenant.id, action=action)
    return rows.count()


def test_an_expired_key_is_recorded_in_the_audit_log_once() -> None:
    account = make_tenant()
    make_key(account.tenant, expires_at=_ago(HOUR))
    make_key(account.tenant, expires_at=timezone.now() + HOUR)
    make_key(account.tenant, expires_at=_ago(HOUR + MINUTE))
    keys = ApiKey.unscoped.using("relay").filter(tenant_id=account.tenant.id)
    keys.filter(expires_at__lt=_ago(HOUR + MINUTE / 2)).update(revoked_at=timezone.now())
    for _ in range(3):
        expiry.note_api_keys()
    assert _actions(account, "api_key.expired") == 1


def test_a_key_that_expires_a_second_time_is_recorded_again() -> None:
    account = make_tenant()
    make_key(account.tenant, expires_at=_ago(HOUR))
    expiry.note_api_keys()
    keys = ApiKey.unscoped.using("relay").filter(tenant_id=account.tenant.id)
    expiring = keys.exclude(expires_at=None)
    expiring.update(expires_at=timezone.now() + HOUR)
    expiry.note_api_keys()
    assert _actions(account, "api_key.expired") == 1
    expiring.update(expires_at=timezone.now())
    expiry.note_api_keys()
    assert _actions(account, "api_key.expired") == 2


def _invite(
    account: TenantAccount,
    expires_at: datetime.datetime,
    accepted_at: datetime.datetime | None = None,
) -> Invitation:
    with scoped(tenant_id=account.tenant.id):
        return Invitation.objects.create(
            email=unique("guest") + "@example.test",
            role=Role.VIEWER,
            token_hash=os.urandom(32),
            expires_at=expires_at,
            accepted_at=accepted_at,
        )


def test_an_expired_invitation_is_removed_with_one_audit_entry() -> None:
    account = make_tenant()
    over = _invite(account, _ago(HOUR))
    open_ = _invite(account, timezone.now() + HOUR)
    accepted = _invite(account, _ago(HOUR), accepted_at=_ago(2 * HOUR))
    long_accepted = _invite(account, _ago(40 * DAY), accepted_at=_ago(31 * DAY))
    for _ in range(2):
        expiry.delete_invitations()
    left = Invitation.unscoped.using("relay").filter(tenant_id=account.tenant.id)
    assert set(left.values_list("pk", flat=True)) == {open_.pk, accepted.pk}
    assert not {over.pk, long_accepted.pk} & set(left.values_list("pk", flat=True))
    assert _actions(account, "invitation.expired") == 1


def test_tokens_go_a_month_after_they_expired_or_were_revoked() -> None:
    user = make_user()

    def token(**columns: object) -> PersonalToken:
        row = PersonalToken(
            user_id=user.pk, name="t", key_id=secrets.token_hex(8), secret_hash=b"x", **columns
        )
        with scoped(user_id=user.pk):
            row.save()
        return row

    kept = [token(), token(expires_at=_ago(29 * DAY)), token(revoked_at=_ago(29 * DAY))]
    token(expires_at=_ago(31 * DAY))
    token(revoked_at=_ago(31 * DAY))
    retention.delete_tokens()
    left = PersonalToken.objects.using("relay").filter(user=user)
    assert {row.pk for row in left} == {row.pk for row in kept}


def test_expired_sessions_and_mailed_links_go() -> None:
    user = make_user()
    for expires_at in (_ago(HOUR), timezone.now() + HOUR):
        UserSession.objects.using("auth").create(
            user=user,
            token_hash=os.urandom(32),
            last_seen_at=_ago(HOUR),
            expires_at=expires_at,
        )
        EmailProof.objects.using("auth").create(
            user=user, purpose="verify", token_hash=os.urandom(32), expires_at=expires_at
        )
    retention.delete_sign_ins()
    now = timezone.now()
    sessions = UserSession.objects.using("relay").filter(user=user)
    proofs = EmailProof.objects.using("relay").filter(user=user)
    assert [row.expires_at > now for row in sessions] == [True]
    assert [row.expires_at > now for row in proofs] == [True]


def test_idempotency_records_go_after_a_day(as_owner: Callable[..., None]) -> None:
    account = make_tenant()
    with scoped(tenant_id=account.tenant.id):
        old, fresh = (
            IdempotencyRecord.objects.create(
                tenant_id=account.tenant.id,
                key_hash=os.urandom(32),
                request_hash=b"r",
                status=200,
                body=b"",
            )
            for _ in range(2)
        )
        for record in (old, fresh):
            CallProgress.objects.create(
                tenant_id=account.tenant.id,
                key_hash=record.key_hash,
                request_hash=b"r",
                state=b"",
            )
    for table in ("idempotencyrecord", "callprogress"):
        as_owner(
            f"UPDATE foundation_{table} SET created_at = %s WHERE key_hash = %s",
            _ago(25 * HOUR),
            old.key_hash,
        )
    retention.delete_idempotency_records()
    for model in (IdempotencyRecord, CallProgress):
        left = model._base_manager.using("relay").filter(tenant_id=account.tenant.id)
        assert [bytes(row.key_hash) for row in left] == [fresh.key_hash]


def test_audit_entries_are_kept_for_the_configured_time(
    as_owner: Callable[..., None], settings_environment: pytest.MonkeyPatch
) -> None:
    settings_environment.setenv("RILLBASE_AUDIT_RETENTION_DAYS", "10")
    account = make_tenant()
    with scoped(tenant_id=account.tenant.id):
        old, fresh = (
            AuditEntry.objects.create(action="x.y", actor="system", target_type="x", target_id="1")
            for _ in range(2)
        )
    as_owner("UPDATE tenants_auditentry SET at = %s WHERE id = %s", _ago(11 * DAY), old.pk)
    retention.delete_audit_entries()
    left = AuditEntry.unscoped.using("relay").filter(tenant_id=account.tenant.id)
    assert [row.pk for row in left] == [fresh.pk]


def test_finished_deliveries_go_after_a_month_and_redeliveries_of_them_stay() -> None:
    account = make_tenant()
    states = WebhookDelivery.State
    with scoped(tenant_id=account.tenant.id):
        webhook = Webhook.objects.create(name="w", url="https://example.test", sealed_secret=b"")

        def delivery(
            finished_at: datetime.datetime | None, repeats: WebhookDelivery | None = None
        ) -> WebhookDelivery:
            return WebhookDelivery.objects.create(
                webhook=webhook,
                event_id=uuid7(),
                event_type="x.y",
                payload={},
                state=states.FAILED if finished_at else states.PENDING,
                finished_at=finished_at,
                redelivery_of=repeats,
            )

        old = delivery(_ago(31 * DAY))
        again = delivery(_ago(DAY), repeats=old)
        pending = delivery(None)
    retention.delete_deliveries()
    left = WebhookDelivery.unscoped.using("relay").filter(tenant_id=account.tenant.id)
    assert {row.pk for row in left} == {again.pk, pending.pk}
    again.refresh_from_db(using="relay", from_queryset=WebhookDelivery.unscoped.using("relay"))
    assert again.redelivery_of_id is None
