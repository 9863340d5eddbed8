"""The staff admin's site and its models.

Everything is read and written with the role `rb_staff`: the database, not this file, limits what
staff may do. Secrets, audit entries and tenants' ids cannot be edited.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import ClassVar, TypeAlias

from django.db import models, transaction
from django.forms import ModelForm
from django.http import HttpRequest
from unfold.admin import ModelAdmin
from unfold.sites import UnfoldAdminSite

from documents.models import Collection, ImportJob, Index
from foundation import request_context
from foundation.models import DeadLetter, OutboxTask
from foundation.tasks import requeue
from foundation.tasks.dead_letters import AlreadyRequeued
from tenants.models import (
    AuditEntry,
    Membership,
    Plan,
    Quota,
    Tenant,
    UsageHour,
    User,
    UserSession,
    Webhook,
    WebhookDelivery,
)

ALIAS = "staff"

Form: TypeAlias = "ModelForm[models.Model]"
CharField: TypeAlias = "models.CharField[str, str]"
AnyForeignKey: TypeAlias = "models.ForeignKey[models.Model, models.Model]"


class StaffSite(UnfoldAdminSite):  # type: ignore[misc]
    """The site at /staff/."""

    site_title = "Rillbase staff"
    site_header = "Rillbase"
    index_title = "Installation"


site = StaffSite(name="admin")


class StaffModelAdmin(ModelAdmin):  # type: ignore[misc]
    """Reads and writes over the staff role."""

    #: Bulk deletion would bypass `delete_model` and thus the audit log.
    actions: ClassVar[tuple[str, ...] | None] = None

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[models.Model]:
        manager = getattr(self.model, "unscoped", self.model._default_manager)
        rows: models.QuerySet[models.Model] = manager.using(ALIAS)
        ordering = self.get_ordering(request)
        return rows.order_by(*ordering) if ordering else rows

    def save_model(
        self,
        request: HttpRequest,
        obj: models.Model,
        form: Form,
        change: bool,  # noqa: FBT001
    ) -> None:
        obj.save(using=ALIAS)

    def delete_model(self, request: HttpRequest, obj: models.Model) -> None:
        obj.delete(using=ALIAS)

    def formfield_for_foreignkey(
        self, db_field: AnyForeignKey, request: HttpRequest, **kwargs: object
    ) -> object:
        kwargs["using"] = ALIAS
        return super().formfield_for_foreignkey(db_field, request, **kwargs)


class ReadOnlyAdmin(StaffModelAdmin):
    """A read-only model."""

    def get_fields(self, request: HttpRequest, obj: object = None) -> list[str]:
        """Return the fields without creating a form, whose choices would need a tenant in scope."""
        hidden = self.exclude or ()
        return [field.name for field in self.model._meta.fields if field.name not in hidden]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False


class AuditedAdmin(StaffModelAdmin):
    """A model whose changes by staff appear in the tenant's audit log."""

    def save_model(
        self,
        request: HttpRequest,
        obj: models.Model,
        form: Form,
        change: bool,  # noqa: FBT001
    ) -> None:
        before = {name: form.initial.get(name) for name in form.changed_data}
        after = {name: form.cleaned_data.get(name) for name in form.changed_data}
        with transaction.atomic(using=ALIAS):
            super().save_model(request, obj, form, change)
            self._record(request, obj, "changed" if change else "created", before, after)

    def delete_model(self, request: HttpRequest, obj: models.Model) -> None:
        with transaction.atomic(using=ALIAS):
            self._record(request, obj, "removed", None, None)
            super().delete_model(request, obj)

    def _record(
        self,
        request: HttpRequest,
        obj: models.Model,
        what: str,
        before: dict[str, object] | None,
        after: dict[str, object] | None,
    ) -> None:
        staff = request.user
        AuditEntry(
            tenant_id=obj.pk if isinstance(obj, Tenant) else getattr(obj, "tenant_id"),  # noqa: B009
            action=f"{obj._meta.model_name}.{what}_by_staff",
            actor=f"staff:{staff.pk}",
            actor_label="Rillbase staff",
            address=request_context.client_address.get() or None,
            request_id=request_context.request_id.get(),
            target_type=str(obj._meta.model_name),
            target_id=str(obj.pk),
            before=before and json.loads(json.dumps(before, default=str)),
            after=after and json.loads(json.dumps(after, default=str)),
        ).save(using=ALIAS)


class TenantAdmin(AuditedAdmin):
    """Tenants: staff may change the plan and suspend.

    Only owners can delete and restore a tenant: deletion also needs a date on which the data is
    removed.
    """

    list_display: ClassVar = ("slug", "name", "plan", "state", "created_at", "purge_at")
    list_filter: ClassVar = ("state", "plan")
    search_fields: ClassVar = ("slug", "name")
    fields: ClassVar = ("slug", "name", "plan", "state", "cors_origins", "created_at", "purge_at")
    readonly_fields: ClassVar = ("slug", "name", "cors_origins", "created_at", "purge_at")

    def get_readonly_fields(
        self, request: HttpRequest, obj: models.Model | None = None
    ) -> tuple[str, ...]:
        being_deleted = isinstance(obj, Tenant) and obj.state == Tenant.State.DELETING
        return (*self.readonly_fields, "state") if being_deleted else self.readonly_fields

    def formfield_for_choice_field(
        self, db_field: CharField, request: HttpRequest, **kwargs: object
    ) -> object:
        if db_field.name == "state":
            states = (Tenant.State.ACTIVE, Tenant.State.SUSPENDED)
            kwargs["choices"] = [(state.value, state.label) for state in states]
        return super().formfield_for_choice_field(db_field, request, **kwargs)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False


class UserAdmin(StaffModelAdmin):
    """People: staff may lock an account out or make it staff."""

    list_display: ClassVar = ("email", "name", "is_active", "is_staff", "created_at", "last_login")
    list_filter: ClassVar = ("is_active", "is_staff")
    search_fields: ClassVar = ("email", "name")
    fields: ClassVar = ("email", "name", "is_active", "is_staff", "created_at", "last_login")
    readonly_fields: ClassVar = ("email", "name", "created_at", "last_login")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False


class PlanAdmin(StaffModelAdmin):
    """Plans and their limits."""

    list_display: ClassVar = ("name", "description")


class QuotaAdmin(AuditedAdmin):
    """Quotas of tenants that differ from their plans."""

    list_display: ClassVar = ("tenant", "limits", "updated_at")


class MembershipAdmin(ReadOnlyAdmin):
    """Memberships of users in tenants."""

    list_display: ClassVar = ("tenant", "user", "role", "created_at")
    search_fields: ClassVar = ("tenant__slug", "user__email")
    list_select_related: ClassVar = ("tenant", "user")


class SessionAdmin(StaffModelAdmin):
    """Signed-in browsers. Deleting a row signs the browser out."""

    list_display: ClassVar = ("user", "address", "user_agent", "last_seen_at", "expires_at")
    search_fields: ClassVar = ("user__email",)
    fields: ClassVar = ("user", "address", "user_agent", "created_at", "last_seen_at", "expires_at")
    readonly_fields: ClassVar = fields
    list_select_related: ClassVar = ("user",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False


class AuditAdmin(ReadOnlyAdmin):
    """Changes, and who made them."""

    list_display: ClassVar = ("at", "tenant", "action", "actor_label", "target_type", "target_id")
    list_filter: ClassVar = ("action",)
    search_fields: ClassVar = ("tenant__slug", "actor_label", "target_id", "request_id")
    list_select_related: ClassVar = ("tenant",)
    ordering: ClassVar = ("-id",)


class UsageAdmin(ReadOnlyAdmin):
    """The hourly usage of tenants."""

    list_display: ClassVar = ("hour", "tenant", "metric", "amount")
    list_filter: ClassVar = ("metric",)
    search_fields: ClassVar = ("tenant__slug",)
    list_select_related: ClassVar = ("tenant",)
    ordering: ClassVar = ("-hour",)


class WebhookAdmin(ReadOnlyAdmin):
    """Webhooks and their states."""

    list_display: ClassVar = ("tenant", "name", "url", "state", "failing_since")
    list_filter: ClassVar = ("state",)
    exclude: ClassVar = ("sealed_secret", "sealed_previous_secret")
    list_select_related: ClassVar = ("tenant",)


class DeliveryAdmin(ReadOnlyAdmin):
    """Deliveries to webhooks."""

    list_display: ClassVar = ("created_at", "tenant", "event_type", "state", "attempts")
    list_filter: ClassVar = ("state",)
    exclude: ClassVar = ("payload",)
    list_select_related: ClassVar = ("tenant",)
    ordering: ClassVar = ("-id",)


class CollectionAdmin(ReadOnlyAdmin):
    """The definitions of collections, without documents."""

    list_display: ClassVar = ("tenant", "name", "state", "backend", "created_at")
    list_filter: ClassVar = ("state", "backend")
    search_fields: ClassVar = ("tenant__slug", "name")
    list_select_related: ClassVar = ("tenant",)
    ordering: ClassVar = ("-id",)


class IndexAdmin(ReadOnlyAdmin):
    """Indexes and their build progress. Errors are not shown, since they may quote documents."""

    list_display: ClassVar = (
        "tenant",
        "collection",
        "name",
        "state",
        "documents_done",
        "documents_total",
    )
    list_filter: ClassVar = ("state", "unique")
    search_fields: ClassVar = ("tenant__slug", "collection__name", "name")
    list_select_related: ClassVar = ("tenant", "collection")
    exclude: ClassVar = ("position", "error")
    ordering: ClassVar = ("-number",)


class ImportJobAdmin(ReadOnlyAdmin):
    """Imports and their progress. Errors are not shown, since they may quote documents."""

    list_display: ClassVar = ("created_at", "tenant", "collection", "mode", "state", "lines_done")
    list_filter: ClassVar = ("state", "mode")
    search_fields: ClassVar = ("tenant__slug", "collection__name")
    list_select_related: ClassVar = ("tenant", "collection")
    exclude: ClassVar = ("errors",)
    ordering: ClassVar = ("-id",)


class OutboxAdmin(ReadOnlyAdmin):
    """Tasks that have not ended; those with `handed_at` are in the broker."""

    list_display: ClassVar = ("created_at", "name", "queue", "due_at", "handed_at", "tenant_id")


class DeadLetterAdmin(ReadOnlyAdmin):
    """Dead letters, which staff may run again."""

    list_display: ClassVar = ("failed_at", "name", "attempts", "tenant_id", "requeued_at")
    list_filter: ClassVar = ("name",)
    ordering: ClassVar = ("-failed_at",)
    actions: ClassVar = ("run_again",)

    def run_again(self, request: HttpRequest, letters: models.QuerySet[DeadLetter]) -> None:
        """Queue the selected tasks once more. A task that fails again gets a new dead letter."""
        queued = 0
        for letter in letters:
            with suppress(AlreadyRequeued):
                requeue(letter)
                queued += 1
        self.message_user(request, f"{queued} of {len(letters)} tasks were requeued.")


for _model, _admin in (
    (Tenant, TenantAdmin),
    (User, UserAdmin),
    (Plan, PlanAdmin),
    (Quota, QuotaAdmin),
    (Membership, MembershipAdmin),
    (UserSession, SessionAdmin),
    (AuditEntry, AuditAdmin),
    (UsageHour, UsageAdmin),
    (Webhook, WebhookAdmin),
    (WebhookDelivery, DeliveryAdmin),
    (Collection, CollectionAdmin),
    (Index, IndexAdmin),
    (ImportJob, ImportJobAdmin),
    (OutboxTask, OutboxAdmin),
    (DeadLetter, DeadLetterAdmin),
):
    site.register(_model, _admin)
