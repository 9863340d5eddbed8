"""Sessions, forms and messages for the staff admin alone.

API requests bypass them: the chain below is used only for paths under /staff/.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.messages.middleware import MessageMiddleware
from django.contrib.sessions.middleware import SessionMiddleware
from django.http import HttpRequest, HttpResponseBase
from django.middleware.clickjacking import XFrameOptionsMiddleware
from django.middleware.common import CommonMiddleware
from django.middleware.csrf import CsrfViewMiddleware

PREFIX = "/staff/"

Handler = Callable[[HttpRequest], HttpResponseBase]

_CHAIN = (
    SessionMiddleware,
    CommonMiddleware,
    AuthenticationMiddleware,
    MessageMiddleware,
    XFrameOptionsMiddleware,
)


class StaffMiddleware:
    """Applies Django's usual chain to requests under /staff/ only."""

    sync_capable = True
    async_capable = False

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response
        self.csrf = CsrfViewMiddleware(get_response)
        chain: object = self.csrf
        for middleware in reversed(_CHAIN):
            chain = middleware(cast("Handler", chain))
        self.staff_chain = cast("Handler", chain)

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.path_info.startswith(PREFIX):
            return self.staff_chain(request)
        return self.get_response(request)

    def process_view(
        self,
        request: HttpRequest,
        view: Handler,
        args: tuple[object, ...],
        kwargs: dict[str, object],
    ) -> HttpResponseBase | None:
        """Check the CSRF token of staff forms, once the view is known."""
        if request.path_info.startswith(PREFIX):
            return self.csrf.process_view(request, view, args, kwargs)
        return None
