"""The lifecycle of an API request.

    enter      authentication, rate limits, authorisation            (no transaction yet)
    transact   one transaction in the caller's scope; the idempotency record is part of it
    answer     headers common to all responses; errors as problem documents

A view declares only what is specific to it: how to enter, in which scope, and its handlers.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import ClassVar

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.template.response import SimpleTemplateResponse
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from foundation.api import idempotency
from foundation.api.bodies import BodySerializer, read_body
from foundation.api.preconditions import etag, not_modified
from foundation.api.rendering import JsonRenderer
from foundation.environment import environment
from foundation.errors import BodyTooLarge, InvalidParameter, NotFound
from foundation.json_types import JsonObject

_RENDERER = JsonRenderer()


class ApiView(APIView):
    """Base of all REST views."""

    #: Fields of responses that are shown once and never stored with an idempotency record.
    secret_fields: ClassVar[tuple[str, ...]] = ()
    max_body_bytes: ClassVar[int] = environment().rillbase_control_body_max_bytes

    answer_headers: dict[str, str]

    @abstractmethod
    def enter(self, request: Request, **kwargs: str) -> None:
        """Authenticate, count against limits, authorise. Raise the error to respond with."""

    @abstractmethod
    def transaction(self, request: Request) -> AbstractContextManager[object]:
        """Return the transaction, with its scope, in which the handler runs."""

    @abstractmethod
    def caller(self) -> idempotency.IdempotencyScope:
        """Return the owner of the idempotency keys."""

    def dispatch(self, request: HttpRequest, *args: str, **kwargs: str) -> HttpResponseBase:
        """Process the request. The framework's authentication and throttles are not used."""
        self.args, self.kwargs = args, kwargs
        self.headers: dict[str, str] = {}
        self.answer_headers = {}
        wrapped = self.initialize_request(request, *args, **kwargs)
        wrapped.accepted_renderer = _RENDERER
        wrapped.accepted_media_type = _RENDERER.media_type
        self.request = wrapped
        try:
            response = self._run(wrapped, kwargs)
        except Exception as error:  # noqa: BLE001 -- every error becomes a problem document
            response = self.handle_exception(error)
        self.response = self.finalize_response(wrapped, response, *args, **kwargs)
        for name, value in self.answer_headers.items():
            self.response.headers.setdefault(name, value)
        return with_length(self.response)

    def _run(self, request: Request, kwargs: Mapping[str, str]) -> Response:
        handler = getattr(self, (request.method or "").lower(), self.http_method_not_allowed)
        if request.method not in self.allowed_methods:
            handler = self.http_method_not_allowed
        self._check_size(request)
        _check_address(request)
        self.enter(request, **kwargs)
        with self.transaction(request):
            return idempotency.once(
                request,
                self.caller(),
                self.secret_fields,
                lambda: handler(request, **kwargs),
            )

    def _check_size(self, request: Request) -> None:
        length = request.META.get("CONTENT_LENGTH") or "0"
        if length.isdigit() and int(length) > self.max_body_bytes:
            raise BodyTooLarge(f"The body may have at most {self.max_body_bytes} bytes.")

    def body(self, form: type[BodySerializer], *, partial: bool = False) -> JsonObject:
        """Return the validated request body."""
        return read_body(form, self.request.data, partial=partial)

    def one(
        self, body: JsonObject, version: int, *, status: int = 200, location: str = ""
    ) -> Response:
        """Respond with one resource and its ETag, or with 304 if the caller already has it."""
        headers = {"ETag": etag(version)}
        if location:
            headers["Location"] = location
        if self.request.method in ("GET", "HEAD") and not_modified(self.request, version):
            return Response(None, status=304, headers=headers)
        return Response(body, status=status, headers=headers)


def with_length(response: HttpResponseBase) -> HttpResponseBase:
    """Render a response and set its length, so that it needs no chunked transfer."""
    if isinstance(response, SimpleTemplateResponse):
        response.render()
    if isinstance(response, HttpResponse):
        response.headers["Content-Length"] = str(len(response.content))
    return response


def _check_address(request: Request) -> None:
    """Reject NUL characters in path and parameters: names and PostgreSQL have none."""
    if "\0" in request.path:
        raise NotFound
    for name, values in request.GET.lists():
        if "\0" in name or any("\0" in value for value in values):
            raise InvalidParameter("NUL characters are not allowed in parameters.")
