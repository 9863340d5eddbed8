"""`/api/v1/tenants/{tenant}/webhooks`.

Any member may list the webhooks. They deliver entries of the audit log, so changing them and
reading deliveries requires the same role as reading the audit log: admin.
"""

from __future__ import annotations

from functools import partial
from typing import ClassVar
from uuid import UUID

from django.core.validators import RegexValidator
from django.urls import path
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from foundation.api.bodies import BodySerializer
from foundation.api.cursors import page
from foundation.errors import FieldProblem, InvalidParameter
from foundation.outbound.targets import MAX_URL_CHARS
from tenants.actions import webhooks as actions
from tenants.api.base import TenantView, find, find_for_change, find_own, page_of
from tenants.api.forms import LabelField
from tenants.models import Tenant, Webhook, WebhookDelivery
from tenants.roles import Role

TAG = "Webhooks"
operation = partial(extend_schema, tags=[TAG])
MAX_PATTERNS = 50
MAX_PATTERN_CHARS = 60
_PATTERN = r"\A(\*|[a-z][a-z0-9_]*(\.[a-z0-9_]+)*(\.\*)?)\Z"


class WebhookAnswer(serializers.Serializer[object]):
    """A webhook."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    url = serializers.CharField()
    events = serializers.ListField(child=serializers.CharField())
    state = serializers.ChoiceField(Webhook.State.choices)
    state_reason = serializers.CharField(allow_null=True)
    failing_since = serializers.DateTimeField(
        allow_null=True, help_text="Time since which every attempt has failed."
    )
    previous_secret_until = serializers.DateTimeField(
        allow_null=True, help_text="Time until which messages are also signed with the old secret."
    )
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()


class NewWebhookAnswer(WebhookAnswer):
    """A webhook with its new secret, which is shown only once."""

    secret = serializers.CharField(
        allow_null=True, help_text="The signing secret. Null when an idempotent call is repeated."
    )


class DeliveryAnswer(serializers.Serializer[object]):
    """The delivery of one event to one webhook, and its state."""

    id = serializers.UUIDField()
    webhook_id = serializers.UUIDField()
    event_id = serializers.UUIDField()
    event_type = serializers.CharField()
    payload = serializers.JSONField()
    state = serializers.ChoiceField(WebhookDelivery.State.choices)
    attempts = serializers.IntegerField()
    next_attempt_at = serializers.DateTimeField(allow_null=True)
    last_status = serializers.IntegerField(allow_null=True)
    last_error = serializers.CharField(allow_null=True)
    last_answer = serializers.CharField(
        allow_null=True, help_text="The first bytes of the receiver's last response."
    )
    last_duration_ms = serializers.IntegerField(allow_null=True)
    created_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)
    redelivery_of = serializers.UUIDField(allow_null=True)


class _WebhookFields(BodySerializer):
    name = LabelField(help_text="A display name.")
    url = serializers.CharField(
        max_length=min(2000, MAX_URL_CHARS),
        trim_whitespace=False,
        help_text="URL that receives the events: https, on a host on the public internet.",
    )
    events = serializers.ListField(
        child=serializers.CharField(
            max_length=MAX_PATTERN_CHARS,
            trim_whitespace=False,
            validators=[
                RegexValidator(
                    _PATTERN,
                    "An event type (api_key.created), a family (api_key.*) or *.",
                    "invalid_pattern",
                )
            ],
        ),
        min_length=1,
        max_length=MAX_PATTERNS,
        help_text="Event types: names (`api_key.created`), prefixes (`api_key.*`), or `*` for all.",
    )


class WebhookCreation(_WebhookFields):
    """The fields of a new webhook."""


class WebhookChange(_WebhookFields):
    """The fields of a webhook that can be changed."""

    state = serializers.ChoiceField(
        [Webhook.State.ACTIVE.value, Webhook.State.DISABLED.value],
        help_text="`disabled` stops deliveries; `active` starts the handshake again.",
    )


class EmptyBody(BodySerializer):
    """An empty body."""


_NEW_WEBHOOK = OpenApiExample(
    "All events about keys",
    {"name": "Key watch", "url": "https://hooks.example.com/rillbase", "events": ["api_key.*"]},
    request_only=True,
)


class _WebhooksView(TenantView):
    """Base of the views of webhooks: viewers may read, admins may change."""

    roles: ClassVar = {
        "GET": Role.VIEWER,
        "POST": Role.ADMIN,
        "PATCH": Role.ADMIN,
        "DELETE": Role.ADMIN,
    }
    secret_fields = ("secret",)


class WebhooksView(_WebhooksView):
    """The webhooks of a tenant."""

    @operation("webhooks_list", summary="List webhooks", responses=page_of(WebhookAnswer))
    def get(self, request: Request, tenant: str) -> Response:
        name = f"webhooks:{self.tenant.id}"
        return Response(page(request, Webhook.objects.all(), actions.describe, name=name))

    @operation(
        "webhooks_create",
        summary="Create a webhook",
        description="`secret` signs the messages and is shown only once. The webhook is "
        "`pending` until its receiver has echoed the challenge of a "
        "`webhook.verification` message.",
        request=WebhookCreation,
        responses={201: NewWebhookAnswer},
        examples=[_NEW_WEBHOOK],
    )
    def post(self, request: Request, tenant: str) -> Response:
        values = self.body(WebhookCreation)
        actions.check_url(str(values["url"]))
        owner = Tenant.objects.select_related("plan", "quota").get(pk=self.tenant.id)
        row, secret = actions.do_create(self.principal, owner, values)
        return self.one(
            {**actions.describe(row), "secret": secret},
            row.version,
            status=201,
            location=self.url("webhooks", str(row.id)),
        )


class WebhookView(_WebhooksView):
    """One webhook."""

    @operation("webhooks_read", summary="Read a webhook", responses=WebhookAnswer)
    def get(self, request: Request, tenant: str, webhook: UUID) -> Response:
        row = find_own(Webhook, webhook)
        return self.one(actions.describe(row), row.version)

    @operation(
        "webhooks_change",
        summary="Change, enable or disable a webhook",
        description="A webhook with a new URL, or that is enabled again, is `pending` until the "
        "handshake succeeds.",
        request=WebhookChange,
        responses=WebhookAnswer,
    )
    def patch(self, request: Request, tenant: str, webhook: UUID) -> Response:
        changes = self.body(WebhookChange, partial=True)
        if "url" in changes:
            actions.check_url(str(changes["url"]))
        row = find_for_change(request, Webhook.objects.all(), pk=webhook)
        actions.do_change(self.principal, row, changes)
        return self.one(actions.describe(row), row.version)

    @operation(
        "webhooks_delete", summary="Delete a webhook with its deliveries", responses={204: None}
    )
    def delete(self, request: Request, tenant: str, webhook: UUID) -> Response:
        row = find_for_change(request, Webhook.objects.all(), pk=webhook)
        actions.do_delete(self.principal, row)
        return Response(status=204)


class WebhookVerifyView(_WebhooksView):
    """Repeats the handshake."""

    @operation(
        "webhooks_verify",
        summary="Repeat the handshake",
        description="Runs in the background; `state` and `state_reason` report the result.",
        request=EmptyBody,
        responses={202: WebhookAnswer},
    )
    def post(self, request: Request, tenant: str, webhook: UUID) -> Response:
        self.body(EmptyBody)
        row = find_for_change(request, Webhook.objects.all(), pk=webhook)
        actions.do_verify(self.principal, row)
        return self.one(actions.describe(row), row.version, status=202)


class WebhookTestView(_WebhooksView):
    """Sends a test event."""

    @operation(
        "webhooks_test",
        summary="Send a test event",
        description="Sends a `webhook.test` event regardless of the event types that the webhook "
        "is subscribed to.",
        request=EmptyBody,
        responses={202: DeliveryAnswer},
    )
    def post(self, request: Request, tenant: str, webhook: UUID) -> Response:
        self.body(EmptyBody)
        row = find_for_change(request, Webhook.objects.all(), pk=webhook)
        delivery = actions.do_test(self.principal, row)
        location = self.url("webhooks", str(row.id), "deliveries", str(delivery.id))
        body = actions.describe_delivery(delivery)
        return Response(body, status=202, headers={"Location": location})


class WebhookRotateSecretView(_WebhooksView):
    """Rotates the signing secret."""

    @operation(
        "webhooks_rotate_secret",
        summary="Rotate the signing secret",
        description="For a day, messages have two signatures, one with each secret.",
        request=EmptyBody,
        responses=NewWebhookAnswer,
    )
    def post(self, request: Request, tenant: str, webhook: UUID) -> Response:
        self.body(EmptyBody)
        row = find_for_change(request, Webhook.objects.all(), pk=webhook)
        secret = actions.do_rotate_secret(self.principal, row)
        return self.one({**actions.describe(row), "secret": secret}, row.version)


class _DeliveriesView(_WebhooksView):
    roles: ClassVar = {"GET": Role.ADMIN, "POST": Role.ADMIN}


class DeliveriesView(_DeliveriesView):
    """The log of a webhook's deliveries; entries are kept for 30 days."""

    @operation(
        "webhook_deliveries_list",
        summary="List deliveries",
        parameters=[
            OpenApiParameter("state", enum=WebhookDelivery.State.values, description="Only these.")
        ],
        responses=page_of(DeliveryAnswer),
    )
    def get(self, request: Request, tenant: str, webhook: UUID) -> Response:
        row = find_own(Webhook, webhook)
        deliveries = WebhookDelivery.objects.filter(webhook=row)
        state = request.GET.get("state")
        if state is not None:
            deliveries = deliveries.filter(state=_known_state(state))
        name = f"deliveries:{self.tenant.id}:{row.id}"
        return Response(page(request, deliveries, actions.describe_delivery, name=name))


class DeliveryView(_DeliveriesView):
    """One delivery."""

    @operation("webhook_deliveries_read", summary="Read a delivery", responses=DeliveryAnswer)
    def get(self, request: Request, tenant: str, webhook: UUID, delivery: UUID) -> Response:
        row = find(WebhookDelivery.objects.all(), pk=delivery, webhook_id=webhook)
        return Response(actions.describe_delivery(row))


class RedeliverView(_DeliveriesView):
    """Repeats a delivery."""

    @operation(
        "webhook_deliveries_redeliver",
        summary="Redeliver an event",
        description="Creates a new delivery of the same event; its `webhook-id` stays the same.",
        request=EmptyBody,
        responses={202: DeliveryAnswer},
    )
    def post(self, request: Request, tenant: str, webhook: UUID, delivery: UUID) -> Response:
        self.body(EmptyBody)
        hook = find_for_change(request, Webhook.objects.all(), pk=webhook)
        row = find(WebhookDelivery.objects.all(), pk=delivery, webhook_id=webhook)
        repeated = actions.do_redeliver(self.principal, hook, row)
        location = self.url("webhooks", str(hook.id), "deliveries", str(repeated.id))
        body = actions.describe_delivery(repeated)
        return Response(body, status=202, headers={"Location": location})


def _known_state(text: str) -> str:
    if text not in WebhookDelivery.State.values:
        states = ", ".join(WebhookDelivery.State.values)
        raise InvalidParameter(errors=[FieldProblem("state", "invalid", f"One of {states}.")])
    return text


_ONE = "tenants/<str:tenant>/webhooks/<uuid:webhook>"

urlpatterns = [
    path("tenants/<str:tenant>/webhooks", WebhooksView.as_view()),
    path(_ONE, WebhookView.as_view()),
    path(f"{_ONE}:verify", WebhookVerifyView.as_view()),
    path(f"{_ONE}:test", WebhookTestView.as_view()),
    path(f"{_ONE}:rotate-secret", WebhookRotateSecretView.as_view()),
    path(f"{_ONE}/deliveries", DeliveriesView.as_view()),
    path(f"{_ONE}/deliveries/<uuid:delivery>", DeliveryView.as_view()),
    path(f"{_ONE}/deliveries/<uuid:delivery>:redeliver", RedeliverView.as_view()),
]
