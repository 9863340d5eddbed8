"""The browsable API."""

from __future__ import annotations

from functools import lru_cache

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe
from drf_spectacular.generators import SchemaGenerator

from foundation.api.rendering import to_json
from rillbase_server import console


@lru_cache(maxsize=1)
def openapi_document() -> bytes:
    """Generate the OpenAPI document once per process; it depends on the code alone."""
    generator = SchemaGenerator()  # type: ignore[no-untyped-call]
    return to_json(generator.get_schema(request=None, public=True))  # type: ignore[no-untyped-call]


@require_safe
def openapi(request: HttpRequest) -> HttpResponse:
    """Serve the OpenAPI document."""
    return HttpResponse(openapi_document(), content_type="application/json")


@require_safe
def docs(request: HttpRequest) -> HttpResponse:
    """Serve the browsable API. Everything it loads comes from this server."""
    return render(request, "docs.html", {"theme": console.theme()})
