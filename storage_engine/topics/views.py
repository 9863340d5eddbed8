"""`/api/v1/tenants/{tenant}/topics`."""

from __future__ import annotations

from functools import partial
from typing import cast

from django.urls import path
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from storage_engine.models import Topic
from storage_engine.topics import actions
from storage_engine.topics.forms import Grid, TopicChange, TopicCreation
from storage_engine.topics.topic_json import describe
from tenants.api.base import find, find_for_change, page_of
from tenants.api.declared_view import DeclaredView

TAG = "Topics"
operation = partial(extend_schema, tags=[TAG])


class TopicAnswer(serializers.Serializer[object]):
    """A topic."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    kind = serializers.ChoiceField(Topic.Kind.choices)
    grid = Grid(allow_null=True)
    retention_s = serializers.IntegerField()
    max_data_bytes = serializers.IntegerField()
    version = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()


_NEW_TOPIC = OpenApiExample(
    "Incidents in a city",
    {"name": "traffic", "kind": "geo", "retention_s": 3600},
    request_only=True,
)


class _TopicsView(DeclaredView):
    kind = "topics"


class TopicsView(_TopicsView):
    """The topics of a tenant."""

    @operation("topics_list", summary="List topics", responses=page_of(TopicAnswer))
    def get(self, request: Request, tenant: str) -> Response:
        return self.listed(request, Topic.objects.all(), describe)

    @operation(
        "topics_create",
        summary="Create a topic",
        request=TopicCreation,
        responses={201: TopicAnswer},
        examples=[_NEW_TOPIC],
    )
    def post(self, request: Request, tenant: str) -> Response:
        values = cast("actions.TopicValues", self.body(TopicCreation))
        topic = actions.do_create(self.principal, self.owner(), values)
        return self.created(topic, topic.name, describe(topic))


class TopicView(_TopicsView):
    """One topic."""

    @operation("topics_read", summary="Read a topic", responses=TopicAnswer)
    def get(self, request: Request, tenant: str, topic: str) -> Response:
        instance = find(Topic.objects.all(), name=topic)
        return self.one(describe(instance), instance.version)

    @operation(
        "topics_change",
        summary="Change a topic",
        description="The kind and the grid of a topic cannot be changed.",
        request=TopicChange,
        responses=TopicAnswer,
    )
    def patch(self, request: Request, tenant: str, topic: str) -> Response:
        values = cast("actions.TopicValues", self.body(TopicChange, partial=True))
        instance = find_for_change(request, Topic.objects.all(), name=topic)
        actions.do_change(self.principal, instance, values)
        return self.one(describe(instance), instance.version)

    @operation(
        "topics_delete",
        summary="Delete a topic with its publications and subscriptions",
        responses={204: None},
    )
    def delete(self, request: Request, tenant: str, topic: str) -> Response:
        actions.do_delete(self.principal, find_for_change(request, Topic.objects.all(), name=topic))
        return Response(status=204)


urlpatterns = [
    path("tenants/<str:tenant>/topics", TopicsView.as_view()),
    path("tenants/<str:tenant>/topics/<str:topic>", TopicView.as_view()),
]
