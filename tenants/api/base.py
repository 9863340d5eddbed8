"""Base views for signed-in users, members of a tenant, account calls and anonymous callers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import ClassVar, TypeVar
from uuid import UUID

from django.core.exceptions import ObjectDoesNotExist
from django.db import models, transaction
from django.http import HttpRequest, HttpResponseBase
from drf_spectacular.utils import inline_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from foundation import request_context
from foundation.api.idempotency import IdempotencyScope
from foundation.api.preconditions import check_if_match
from foundation.api.problems import translate
from foundation.api.views import ApiView
from foundation.environment import environment
from foundation.errors import ApiError, Forbidden, NotFound, Unauthenticated
from foundation.limits import Limit, limiter
from foundation.one_row import read_one
from foundation.resource import Resource
from foundation.scope import TenantOwned, scoped
from tenants import cors, error_log, usage
from tenants.credentials import act_as, authenticate, sessions
from tenants.credentials.facts import TenantFacts
from tenants.principals import Principal, PrincipalKind
from tenants.quotas import anonymous_limits, refusal_limits, request_limits, user_limits
from tenants.roles import Role

R = TypeVar("R", bound=models.Model)
T = TypeVar("T", bound=TenantOwned)

UNAUTHENTICATED = Unauthenticated.status


class LimitedView(ApiView):
    """A view whose requests count against rate limits."""

    def count(self, limits: Sequence[Limit]) -> None:
        """Count the request; raise `RateLimited` if a limit is exceeded."""
        decision = limiter().check(limits)
        self.answer_headers.update(decision.headers())
        if not decision.allowed:
            raise decision.refusal()

    def handle_exception(self, exc: Exception) -> Response:
        """Respond with an error. Rejected credentials count against the client's address, but only
        after they have been rejected: a valid key is never delayed because another client with the
        same address, or behind the same proxy, tries wrong ones.
        """
        if isinstance(exc, ApiError) and exc.status == UNAUTHENTICATED:
            decision = limiter().check(refusal_limits())
            if not decision.allowed:
                exc = decision.refusal()
        return super().handle_exception(self._log_refusal(translate(exc)))

    def _log_refusal(self, error: ApiError) -> ApiError:
        match = self.request.resolver_match
        place = f"{self.request.method} /{match.route if match is not None else ''}"
        return error_log.note_refusal(error, place, match.kwargs if match is not None else None)


class AnonymousView(LimitedView):
    """For callers without credentials, such as sign-in. Runs as `rb_auth`, outside any tenant."""

    def enter(self, request: Request, **kwargs: str) -> None:
        self.count(anonymous_limits())

    def transaction(self, request: Request) -> AbstractContextManager[object]:
        return transaction.atomic(using="auth")

    def caller(self) -> IdempotencyScope:
        return IdempotencyScope(
            f"address:{request_context.client_address.get()}", None, None, "auth"
        )


class UserView(LimitedView):
    """For a signed-in user, in no particular tenant."""

    principal: Principal
    user_id: UUID

    def enter(self, request: Request, **kwargs: str) -> None:
        self.principal = authenticate.require(request)
        act_as.refuse(request)
        if self.principal.user_id is None:
            raise Forbidden("This call is for users: sign in, or use a personal token.")
        self.user_id = self.principal.user_id
        request_context.authenticated(self.principal.actor)
        self.count(user_limits(str(self.user_id)))

    def transaction(self, request: Request) -> AbstractContextManager[object]:
        return scoped(user_id=self.user_id)

    def caller(self) -> IdempotencyScope:
        return IdempotencyScope(self.principal.actor, None, self.user_id, "default")


class TenantView(LimitedView):
    """For members of a tenant and its `admin` keys; the tenant is named in the path."""

    #: Minimum role per method. HEAD and OPTIONS require the same as GET.
    roles: ClassVar[Mapping[str, Role]] = MappingProxyType({"GET": Role.VIEWER})
    #: Whether the view also serves tenants that are suspended or being deleted.
    serves_inactive: ClassVar[bool] = False

    principal: Principal
    tenant: TenantFacts

    def enter(self, request: Request, **kwargs: str) -> None:
        caller = authenticate.authenticate(request)
        if caller is None:
            raise Unauthenticated(
                "Sign in, or send a personal token or an API key with the scope `admin` as "
                "`Authorization: Bearer …`.",
                headers={"WWW-Authenticate": "Bearer"},
            )
        self.principal, self.tenant = authenticate.enter_tenant(caller, kwargs["tenant"])
        request_context.authenticated(self.principal.actor)
        request_context.tenant_id.set(str(self.tenant.id))
        self.count(
            request_limits(
                str(self.tenant.id), str(self.principal.credential_id), self.tenant.limits
            )
        )
        usage.count(self.tenant.id, "control_requests")
        if not self.serves_inactive:
            authenticate.refuse_inactive(self.tenant)
        act_as.refuse(request)
        method = "GET" if request.method in ("HEAD", "OPTIONS") else request.method
        self.principal.require_role(self.roles.get(method or "", Role.VIEWER))

    def transaction(self, request: Request) -> AbstractContextManager[object]:
        return scoped(tenant_id=self.tenant.id, user_id=self.principal.user_id)

    def caller(self) -> IdempotencyScope:
        return IdempotencyScope(
            self.principal.actor, self.tenant.id, self.principal.user_id, "default"
        )

    def url(self, *parts: str) -> str:
        """Return the address of a resource of this tenant."""
        return "/".join(("/api/v1/tenants", self.tenant.slug, *parts))


class DataView(LimitedView):
    """The data plane: keys, end users, anonymous callers of a publishable key, and members."""

    principal: Principal
    tenant: TenantFacts
    max_body_bytes = environment().rillbase_body_max_bytes

    def dispatch(self, request: HttpRequest, *args: str, **kwargs: str) -> HttpResponseBase:
        if cors.is_preflight(request):
            return cors.preflight(request)
        return super().dispatch(request, *args, **kwargs)

    def enter(self, request: Request, **kwargs: str) -> None:
        self.principal, self.tenant = authenticate.authenticate_data_plane(request)
        if act_as.is_requested(request):
            self.principal = act_as.as_end_user(self.principal, request)
        request_context.authenticated(self.principal.actor)
        request_context.tenant_id.set(str(self.tenant.id))
        self.answer_headers.update(cors.answer_headers(request, self.tenant))
        self.count(
            request_limits(
                str(self.tenant.id), str(self.principal.credential_id), self.tenant.limits
            )
        )
        usage.count(self.tenant.id, "requests")

    def transaction(self, request: Request) -> AbstractContextManager[object]:
        return scoped(tenant_id=self.tenant.id, user_id=self.principal.user_id)

    def caller(self) -> IdempotencyScope:
        return IdempotencyScope(
            self.principal.actor, self.tenant.id, self.principal.user_id, "default"
        )


def find(rows: models.QuerySet[R], **by: object) -> R:
    """Return the one row, or raise `NotFound`."""
    try:
        return rows.get(**by)  # unlike first(), does not sort
    except ObjectDoesNotExist:
        raise NotFound from None


def find_own(model: type[T], pk: UUID) -> T:
    """Return the row of the tenant in scope with this id, or raise `NotFound`."""
    row = read_one(model, pk)
    if row is None:
        raise NotFound
    return row


VR = TypeVar("VR", bound=Resource)


def find_for_change(request: Request, rows: models.QuerySet[VR], **by: object) -> VR:
    """Lock and return the one row, at the version that the caller has seen."""
    row = find(rows.select_for_update(of=("self",)), **by)
    check_if_match(request, row.version)
    return row


class SignInView(AnonymousView):
    """A call without credentials that pages of other origins must not make. Expensive work, such as
    hashing a password, is done in `prepare`, before a database connection is held.
    """

    def enter(self, request: Request, **kwargs: str) -> None:
        super().enter(request, **kwargs)
        if request.method == "POST":
            sessions.check_origin(request)
            # Read here, so that the idempotency record can read the body again.
            _ = request.body
            self.prepare(request)

    def prepare(self, request: Request) -> None:
        """Make the checks that need no transaction."""


class ConsoleView(UserView):
    """For console sessions only: a personal token cannot take over its owner's account."""

    def enter(self, request: Request, **kwargs: str) -> None:
        super().enter(request, **kwargs)
        require_session(self.principal)


def require_session(principal: Principal) -> UUID:
    """Return the user, or raise `Forbidden` if the caller has no console session."""
    if principal.kind is not PrincipalKind.SESSION or principal.user_id is None:
        raise Forbidden("This requires a console session, not a key or token: sign in.")
    return principal.user_id


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
