"""What happened to a change: for a subscription, or for a query and a user.

`/api/v1/tenants/{tenant}/subscriptions/{subscription}/why` and `/api/v1/tenants/{tenant}/why`.
"""

from __future__ import annotations

import json
from functools import partial
from typing import ClassVar

from django.urls import path
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from data_plane.request_reader import refusing
from foundation.api.bodies import BodySerializer
from foundation.errors import Forbidden, InvalidParameter
from foundation.json_types import JsonObject
from realtime.delivery_trace import exchange
from realtime.delivery_trace.question import Hypothesis
from realtime.registration import subscribe_request
from realtime.subscriptions.views import TAG
from rillbase_native import Value, id_key, parse_id
from tenants.api.base import TenantView
from tenants.principals import Principal
from tenants.roles import Role

operation = partial(extend_schema, tags=[TAG])

READ = "documents:read"
MAX_VERSION = 2**53
QUERY = ("collection", "filter", "sort", "offset", "limit")


class StepAnswer(serializers.Serializer[object]):
    """One stage that the version passes."""

    stage = serializers.ChoiceField(
        ["write", "publication", "matching", "filter", "rule", "window", "hub", "delivery"]
    )
    state = serializers.ChoiceField(["passed", "stopped", "waiting", "unknown"])
    title = serializers.CharField()
    detail = serializers.CharField(help_text="What happened at this step, in words.")
    at = serializers.CharField(
        allow_null=True,
        help_text="When it happened, if known; never before its cause.",
    )
    facts = serializers.DictField(help_text="The same as structured data; fields may be added.")


class StoryAnswer(serializers.Serializer[object]):
    """What happened to a version of a document."""

    collection = serializers.CharField()
    document = serializers.JSONField(help_text="The `_id`.")
    version = serializers.IntegerField(allow_null=True)
    newest_version = serializers.IntegerField(allow_null=True)
    deleted = serializers.BooleanField(help_text="Whether this version is a deletion.")
    verdict = serializers.CharField(
        help_text="`told`, `no_match` and others; the guide lists all of them."
    )
    summary = serializers.CharField(help_text="The verdict in one sentence.")
    steps = StepAnswer(many=True)


class WhyAnswer(StoryAnswer):
    """What happened to a version of a document, for one subscription."""

    subscription = serializers.CharField()


class SupposedAnswer(StoryAnswer):
    """What happened to a version of a document, for a hypothetical subscriber."""


class Supposition(BodySerializer):
    """A query, a user and a document."""

    collection = serializers.CharField(max_length=63)
    filter = serializers.JSONField(required=False)
    sort = serializers.JSONField(required=False)
    offset = serializers.IntegerField(required=False)
    limit = serializers.IntegerField(required=False, allow_null=True)
    document = serializers.JSONField(help_text="The `_id`, as Extended JSON.")
    version = serializers.IntegerField(required=False, min_value=1, max_value=MAX_VERSION)
    claims = serializers.DictField(
        required=False,
        allow_null=True,
        help_text="The user's claims, `$auth`; null: an anonymous caller. Omitted: a key.",
    )


class SupposeView(TenantView):
    """Explains one version of one document for a hypothetical subscriber."""

    roles: ClassVar = {"POST": Role.DEVELOPER}

    @operation(
        "why",
        summary="Explain whether a subscriber would get a change, and why",
        request=Supposition,
        responses=SupposedAnswer,
    )
    def post(self, request: Request, tenant: str) -> Response:
        supposition = self.body(Supposition)
        _may_read(self.principal, supposition)
        query = {name: supposition[name] for name in QUERY if name in supposition}
        with refusing():
            identity = Value.parse(json.dumps(supposition["document"]).encode())
            key = id_key(identity)
            subscribe_request.read(Value.parse(json.dumps(query).encode()))
        claims, version = supposition.get("claims"), supposition.get("version")
        whom = Hypothesis(
            json.dumps(query),
            claims if isinstance(claims, dict) else None,
            is_ruled="claims" in supposition,
        )
        newest = version if isinstance(version, int) else None
        answer = exchange.suppose(self.tenant.id, whom, key, newest)
        shown = {"collection": supposition["collection"], "document": json.loads(identity.ejson())}
        return Response({**shown, **answer})


class WhyView(TenantView):
    """Explains one version of one document for one subscription."""

    roles: ClassVar = {"GET": Role.DEVELOPER}

    @operation(
        "subscriptions_why",
        summary="Explain why a client did or did not get a change",
        parameters=[
            OpenApiParameter(
                "document",
                str,
                required=True,
                description="The `_id`, written as in the path of a document.",
            ),
            OpenApiParameter(
                "version", int, description="The version of the document; by default the newest."
            ),
        ],
        responses=WhyAnswer,
    )
    def get(self, request: Request, tenant: str, subscription: str) -> Response:
        identity = _document(request.query_params.get("document"))
        version = _version(request.query_params.get("version"))
        row = exchange.described(self.tenant.id, subscription)
        _may_read(self.principal, row)
        answer = exchange.ask(self.tenant.id, subscription, id_key(identity), version)
        return Response(
            {
                "subscription": subscription,
                "collection": row["collection"],
                "document": json.loads(identity.ejson()),
                **answer,
            }
        )


def _document(text: str | None) -> Value:
    if not text:
        raise InvalidParameter("`document` must name the document by its `_id`.")
    with refusing():
        return parse_id(text)


def _version(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isascii() or not text.isdecimal() or not 0 < int(text) <= MAX_VERSION:
        raise InvalidParameter("`version` must be a positive integer.")
    return int(text)


def _may_read(principal: Principal, row: JsonObject) -> None:
    """Raise unless the caller may read the documents in the answer."""
    principal.require_scope(READ)
    if principal.collections is not None and row["collection"] not in principal.collections:
        raise Forbidden(f"The key may not be used for {row['collection']!r}.")


urlpatterns = [
    path("tenants/<str:tenant>/why", SupposeView.as_view()),
    path("tenants/<str:tenant>/subscriptions/<str:subscription>/why", WhyView.as_view()),
]
