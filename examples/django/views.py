"""Each user's tasks: the server renders them, and the page subscribes to them as the user."""

from datetime import UTC, datetime, timedelta
from functools import cache

import jwt
from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from rillbase import Client

TOKEN_LIFETIME = timedelta(minutes=5)


@cache
def rillbase() -> Client:
    """The client with the secret key, which access rules do not restrict: filter by owner."""
    return Client(settings.RILLBASE_URL, key=settings.RILLBASE_KEY)


@require_GET
@login_required
def tasks(request: HttpRequest) -> HttpResponse:
    """Render the user's tasks."""
    mine = rillbase().collection("personal-tasks").where("owner", "==", subject(request))
    newest = mine.sort("created", descending=True).limit(20).fetch()
    page_settings = {
        "url": settings.RILLBASE_URL,
        "key": settings.RILLBASE_PUBLISHABLE_KEY,
        "owner": subject(request),
    }
    return render(request, "tasks.html", {"tasks": newest, "settings": page_settings})


@require_GET
@login_required
def token(request: HttpRequest) -> JsonResponse:
    """Return a token with which the page subscribes and writes as this user."""
    claims = {
        "iss": settings.RILLBASE_TOKEN_ISSUER,
        "aud": "rillbase",
        "sub": subject(request),
        "exp": datetime.now(UTC) + TOKEN_LIFETIME,
    }
    signed = jwt.encode(claims, settings.RILLBASE_TOKEN_SECRET, "HS256")
    return JsonResponse({"token": signed}, headers={"Cache-Control": "no-store"})


def subject(request: HttpRequest) -> str:
    """Return the user's id in tokens and documents: it never changes, unlike a name."""
    return f"user-{request.user.pk}"
