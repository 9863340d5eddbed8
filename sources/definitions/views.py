"""`/api/v1/tenants/{tenant}/sources` and `…/collections/{collection}/source`."""

from __future__ import annotations

from functools import partial
from typing import cast

from django.urls import path
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from documents.collections.actions import find_by_name, lock_by_name
from foundation.api.preconditions import check_if_match, etag
from sources.definitions import actions
from sources.definitions.describe import describe
from sources.definitions.forms import SourceChange, SourceCreation
from sources.models import Source
from tenants.api.base import page_of
from tenants.api.declared_view import DeclaredView

TAG = "Sources"
operation = partial(extend_schema, tags=[TAG])


class SourceConditionAnswer(serializers.Serializer[object]):
    """Why a source is stopped or waiting."""

    code = serializers.CharField(help_text="Stable; see Operations, Sources.")
    detail = serializers.CharField()
    since = serializers.DateTimeField()


class SourceAnswer(serializers.Serializer[object]):
    """A source and its status."""

    id = serializers.UUIDField()
    collection = serializers.CharField()
    connection = serializers.CharField(help_text="Without its password.")
    schema = serializers.CharField()
    table = serializers.CharField()
    key = serializers.ListField(child=serializers.CharField())
    columns = serializers.ListField(child=serializers.CharField(), allow_null=True)
    paused = serializers.BooleanField()
    state = serializers.ChoiceField(Source.State.choices)
    condition = SourceConditionAnswer(allow_null=True)
    removing_until = serializers.DateTimeField(
        allow_null=True,
        help_text="Of a source that is being removed: until when removal is attempted. What "
        "remains in the database then is recorded in the error log.",
    )
    rows_copied = serializers.IntegerField(help_text="Rows copied by the current or the last copy.")
    copy_reason = serializers.CharField(
        allow_null=True, help_text="Why the table was last copied; `new` the first time."
    )
    confirmed_lsn = serializers.CharField(
        allow_null=True, help_text="Position in the database's log up to which changes are applied."
    )
    slot = serializers.CharField(allow_null=True)
    publication = serializers.CharField()
    slot_bytes = serializers.IntegerField(
        allow_null=True, help_text="Log that the slot makes the database retain."
    )
    lag_bytes = serializers.IntegerField(
        allow_null=True, help_text="Log that has not been processed yet."
    )
    lag_ms = serializers.IntegerField(
        allow_null=True, help_text="Time from the commit of the last transaction to its arrival."
    )
    seen_at = serializers.DateTimeField(allow_null=True, help_text="When this status was read.")
    version = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()


_NEW_SOURCE = OpenApiExample(
    "The orders of a shop",
    {
        "connection": "postgresql://rillbase:secret@db.example.com:5432/shop?sslmode=verify-full",
        "table": "orders",
    },
    request_only=True,
)


class SourcesView(DeclaredView):
    """The sources of a tenant."""

    kind = "sources"

    @operation(
        "sources_list",
        summary="List sources",
        description="Includes sources that were removed or whose collections were deleted, in the "
        "state `removing`, until their slot and publication are dropped from the database. While "
        "the database is unreachable, `condition` says so, and removal is retried until "
        "`removing_until`.",
        responses=page_of(SourceAnswer),
    )
    def get(self, request: Request, tenant: str) -> Response:
        return self.listed(request, actions.listed(), describe)


class _OneSourceView(DeclaredView):
    kind = "sources"

    def _respond(self, source: Source, status: int = 200) -> Response:
        """Respond with a source. Its status changes within a version, so a conditional request
        must not match.
        """
        headers = {"ETag": etag(source.version)}
        if status == 201:  # noqa: PLR2004 -- created
            headers["Location"] = self.url("collections", source.collection_name, "source")
        return Response(describe(source), status=status, headers=headers)


class SourceView(_OneSourceView):
    """The source of one collection."""

    @operation("source_read", summary="Read a collection's source", responses=SourceAnswer)
    def get(self, request: Request, tenant: str, collection: str) -> Response:
        return self._respond(actions.find_of(find_by_name(collection)))

    @operation(
        "source_create",
        summary="Create a source for a collection",
        description="The collection must be empty. From then on, its documents are the rows of "
        "the PostgreSQL table, updated as transactions are committed, and writes are rejected "
        "with `collection_read_only`. Anything that prevents this is rejected immediately, with a "
        "code in `errors`.",
        request=SourceCreation,
        responses={201: SourceAnswer},
        examples=[_NEW_SOURCE],
    )
    def post(self, request: Request, tenant: str, collection: str) -> Response:
        values = cast("actions.SourceValues", self.body(SourceCreation))
        source = actions.do_create(self.principal, self.owner(), collection, values)
        return self._respond(source, status=201)

    @operation(
        "source_change",
        summary="Pause or resume a source, or change its connection",
        request=SourceChange,
        responses=SourceAnswer,
    )
    def patch(self, request: Request, tenant: str, collection: str) -> Response:
        values = cast("actions.SourceValues", self.body(SourceChange, partial=True))
        source = actions.lock_of(find_by_name(collection))
        check_if_match(request, source.version)
        actions.do_change(self.principal, source, values)
        return self._respond(source)

    @operation(
        "source_delete",
        summary="Delete a collection's source",
        description="The documents remain and can be written immediately. The slot and the "
        "publication are dropped after the response; until then, the source is listed as "
        "`removing`.",
        responses={204: None},
    )
    def delete(self, request: Request, tenant: str, collection: str) -> Response:
        owner = lock_by_name(collection)
        source = actions.lock_of(owner)
        check_if_match(request, source.version)
        actions.do_delete(self.principal, owner, source)
        return Response(status=204)


class SourceRebuildView(_OneSourceView):
    """Copies the table again."""

    @operation(
        "source_rebuild",
        summary="Compare a collection's documents with the whole table",
        description="Writes what differs and notifies subscribers. Changes of column types since "
        "the last copy take effect.",
        request=None,
        responses={202: SourceAnswer},
    )
    def post(self, request: Request, tenant: str, collection: str) -> Response:
        source = actions.lock_of(find_by_name(collection))
        check_if_match(request, source.version)
        actions.do_rebuild(self.principal, source)
        return self._respond(source, status=202)


_ONE = "tenants/<str:tenant>/collections/<str:collection>/source"

urlpatterns = [
    path("tenants/<str:tenant>/sources", SourcesView.as_view()),
    path(f"{_ONE}:rebuild", SourceRebuildView.as_view()),
    path(_ONE, SourceView.as_view()),
]
