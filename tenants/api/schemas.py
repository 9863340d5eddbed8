"""Response schemas shared by several resources, for the OpenAPI document."""

from __future__ import annotations

from drf_spectacular.utils import inline_serializer
from rest_framework import serializers


def page_of(item: type[serializers.Serializer[object]]) -> serializers.Serializer[object]:
    """Return the schema of one page of a list."""
    return inline_serializer(
        item.__name__.removesuffix("Answer") + "Page",
        {
            "items": item(many=True),
            "next_cursor": serializers.CharField(
                allow_null=True, help_text="Pass it as `cursor` for the next page; null at the end."
            ),
        },
    )
