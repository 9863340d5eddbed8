"""`/api/v1/tenants/{tenant}/collections`."""

from __future__ import annotations

from functools import partial
from typing import cast

from django.db.models import Prefetch
from django.urls import path
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from documents.backend import Backend
from documents.collections import actions
from documents.collections.declarations import read_declarations
from documents.collections.describe import describe
from documents.collections.forms import (
    AccessRules,
    CollectionChange,
    CollectionCreation,
    IndexPartField,
)
from documents.models import Collection, Index
from documents.technique import DECLARED_TECHNIQUES, TECHNIQUES
from foundation.api.preconditions import check_if_match, etag
from foundation.errors import InvalidParameter
from foundation.json_types import JsonObject
from tenants.api.base import page_of
from tenants.api.declared_view import DeclaredView

TAG = "Collections"
operation = partial(extend_schema, tags=[TAG])
EJSON_HEADER = "Rillbase-EJSON"
MOVE_STATES = ("copying", "failed")


class IndexProgress(serializers.Serializer[object]):
    """The progress of an index's backfill."""

    done = serializers.IntegerField(help_text="Number of documents indexed so far.")
    total = serializers.IntegerField(help_text="Number of documents when the build started.")


class IndexUseAnswer(serializers.Serializer[object]):
    """How an index was used in about an hour."""

    reads = serializers.IntegerField(help_text="Queries, and documents by their ids.")
    writes = serializers.IntegerField(help_text="Inserted, changed and deleted documents.")
    lookups = serializers.IntegerField(
        help_text="Queries whose filter restricts the first fields of the index."
    )
    newest = serializers.IntegerField(
        help_text="Lookups for at most 100 documents, sorted by `$updated` in descending order."
    )
    ordered = serializers.IntegerField(
        help_text="Queries with a sort that a composite index supports."
    )
    entries = serializers.FloatField(
        allow_null=True, help_text="The mean number of entries of a lookup, if it is known."
    )
    block_share = serializers.FloatField(
        allow_null=True,
        help_text="The share of the collection's blocks that may have the value of a document, "
        "from a sample. Null: the collection is small.",
    )


class IndexAdviceAnswer(serializers.Serializer[object]):
    """Which technique suits an automatic index."""

    technique = serializers.ChoiceField(TECHNIQUES)
    gain = serializers.FloatField(
        help_text="The estimated cost of the operations with the present technique, divided by "
        "that with the advised one."
    )
    since = serializers.DateTimeField(
        allow_null=True,
        help_text="Since when the gain has been at least 1.5. After 24 hours, the index is rebuilt "
        "with the advised technique.",
    )
    use = IndexUseAnswer()


class IndexAnswer(serializers.Serializer[object]):
    """An index and its state."""

    name = serializers.CharField()
    fields = serializers.ListField(child=IndexPartField())  # type: ignore[assignment]
    unique = serializers.BooleanField()
    technique = serializers.ChoiceField(DECLARED_TECHNIQUES, help_text="As declared.")
    technique_in_use = serializers.ChoiceField(
        TECHNIQUES, help_text="Differs from `technique` if that is `auto`."
    )
    advice = IndexAdviceAnswer(
        allow_null=True,
        help_text="Only of automatic indexes of native collections that are used enough.",
    )
    state = serializers.ChoiceField(["building", "ready", "failed"])
    progress = IndexProgress()
    error = serializers.CharField(allow_null=True, help_text="Why building the index failed.")


class TtlAnswer(serializers.Serializer[object]):
    """When documents expire."""

    field = serializers.CharField()
    after_s = serializers.IntegerField()


class MoveAnswer(serializers.Serializer[object]):
    """A collection's move to the other backend."""

    backend = serializers.ChoiceField(list(Backend), help_text="Where it moves to.")
    state = serializers.ChoiceField(MOVE_STATES)
    progress = IndexProgress()
    error = serializers.CharField(allow_null=True, help_text="Why it failed.")


class CollectionAnswer(serializers.Serializer[object]):
    """A collection."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    schema = serializers.DictField(allow_null=True)
    access_rules = AccessRules()
    indexes = IndexAnswer(many=True)
    ttl = TtlAnswer(allow_null=True)
    backend = serializers.ChoiceField(list(Backend))
    move = MoveAnswer(
        allow_null=True,
        help_text="Until the collection has moved to the other backend, or since it failed to.",
    )
    read_only = serializers.BooleanField(  # type: ignore[assignment]
        help_text="Whether the documents come from a source, so that writes are rejected."
    )
    version = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()


_NEW_COLLECTION = OpenApiExample(
    "To-dos of end users",
    {
        "name": "todos",
        "schema": {
            "type": "object",
            "required": ["title", "owner"],
            "properties": {"title": {"type": "string", "maxLength": 200}},
        },
        "access_rules": {
            "read": {"owner": {"$auth": "sub"}},
            "create": {"owner": {"$auth": "sub"}},
            "update": {"owner": {"$auth": "sub"}},
            "delete": False,
        },
        "indexes": [{"name": "by-rank", "fields": [["owner", 1], ["rank", 1]]}],
        "ttl": {"field": "done_at", "after_s": 2_592_000},
    },
    request_only=True,
)
_NEW_INDEX = OpenApiExample(
    "Add an index",
    {
        "indexes": [
            {"name": "by-rank", "fields": [["owner", 1], ["rank", 1]]},
            {"name": "by-slug", "fields": [["slug", 1]], "unique": True},
        ]
    },
    request_only=True,
)
_EJSON = OpenApiParameter(
    EJSON_HEADER,
    str,
    OpenApiParameter.HEADER,
    enum=["relaxed", "canonical"],
    description="The form of Extended JSON in which schema and rules are returned.",
)


class _CollectionsView(DeclaredView):
    kind = "collections"

    def shown(self, collection: Collection, indexes: list[Index]) -> JsonObject:
        """Return a collection in the form of Extended JSON that the caller requests."""
        form = self.request.headers.get(EJSON_HEADER, "relaxed")
        if form not in ("relaxed", "canonical"):
            raise InvalidParameter(f"{EJSON_HEADER} must be relaxed or canonical.")
        return describe(collection, indexes, canonical=form == "canonical")


class CollectionsView(_CollectionsView):
    """The collections of a tenant."""

    @operation(
        "collections_list",
        summary="List collections",
        parameters=[_EJSON],
        responses=page_of(CollectionAnswer),
    )
    def get(self, request: Request, tenant: str) -> Response:
        indexes = Prefetch("indexes", queryset=actions.visible_indexes())
        rows = actions.active().select_related("move").prefetch_related(indexes)
        return self.listed(request, rows, lambda row: self.shown(row, list(row.indexes.all())))

    @operation(
        "collections_create",
        summary="Create a collection",
        parameters=[_EJSON],
        request=CollectionCreation,
        responses={201: CollectionAnswer},
        examples=[_NEW_COLLECTION],
    )
    def post(self, request: Request, tenant: str) -> Response:
        raw = request._request.body
        values = cast("actions.CollectionValues", self.body(CollectionCreation))
        declarations = read_declarations(raw)
        row, indexes = actions.do_create(self.principal, self.owner(), values, declarations)
        return self.created(row, row.name, self.shown(row, indexes))


class CollectionView(_CollectionsView):
    """One collection."""

    @operation(
        "collections_read",
        summary="Read a collection",
        parameters=[_EJSON],
        responses=CollectionAnswer,
    )
    def get(self, request: Request, tenant: str, collection: str) -> Response:
        row = actions.find_by_name(collection)
        indexes = actions.indexes_of(row)
        body = self.shown(row, indexes)
        has_progress = any(index.state == Index.State.BUILDING or index.advice for index in indexes)
        if has_progress or row.move_stage:
            # Progress and advice change within a version, so a conditional request must not match.
            return Response(body, headers={"ETag": etag(row.version)})
        return self.one(body, row.version)

    @operation(
        "collections_change",
        summary="Change a collection",
        description="Each field replaces the previous value as a whole. Indexes are identified by "
        "name: new ones are built while reads and writes continue, and omitted ones are dropped.",
        parameters=[_EJSON],
        request=CollectionChange,
        responses=CollectionAnswer,
        examples=[_NEW_INDEX],
    )
    def patch(self, request: Request, tenant: str, collection: str) -> Response:
        raw = request._request.body
        values = cast("actions.CollectionValues", self.body(CollectionChange, partial=True))
        declarations = read_declarations(raw)
        row = actions.lock_by_name(collection)
        check_if_match(request, row.version)
        indexes = actions.do_change(self.principal, row, values, declarations)
        return self.one(self.shown(row, indexes), row.version)

    @operation(
        "collections_delete",
        summary="Delete a collection with its documents",
        description="The name can be reused immediately; documents are removed in the background.",
        responses={204: None},
    )
    def delete(self, request: Request, tenant: str, collection: str) -> Response:
        row = actions.lock_by_name(collection)
        check_if_match(request, row.version)
        actions.do_delete(self.principal, row)
        return Response(status=204)


urlpatterns = [
    path("tenants/<str:tenant>/collections", CollectionsView.as_view()),
    path("tenants/<str:tenant>/collections/<str:collection>", CollectionView.as_view()),
]
