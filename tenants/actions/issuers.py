"""Issuers of end users' tokens."""

from __future__ import annotations

from typing import TypedDict

from django.db import IntegrityError, transaction

from foundation.api.rendering import timestamp
from foundation.errors import FieldProblem, InvalidBody, NameTaken
from foundation.json_types import JsonObject
from foundation.outbound import OutboundError, outbound_client
from foundation.sealing import seal
from tenants import audit
from tenants.credentials.jwt import ASYMMETRIC, SEAL_PURPOSE, SYMMETRIC
from tenants.models import Issuer, Tenant
from tenants.principals import Principal
from tenants.quotas import ensure_room

MIN_SECRET_BYTES = 32


class IssuerValues(TypedDict):
    """The fields of an issuer that a caller sets; one of `jwks_url` and `secret` is empty."""

    name: str
    issuer: str
    audience: str
    algorithms: list[str]
    jwks_url: str
    secret: str
    leeway_s: int
    max_token_age_s: int


def describe(issuer: Issuer) -> JsonObject:
    """Return an issuer as the API shows it: everything but a shared secret."""
    return {
        "id": str(issuer.id),
        "name": issuer.name,
        "issuer": issuer.issuer,
        "audience": issuer.audience,
        "algorithms": issuer.algorithms,
        "jwks_url": issuer.jwks_url or None,
        "has_secret": bool(issuer.sealed_secret),
        "leeway_s": issuer.leeway_s,
        "max_token_age_s": issuer.max_token_age_s,
        "created_at": timestamp(issuer.created_at),
        "updated_at": timestamp(issuer.updated_at),
    }


def _target(issuer: Issuer) -> audit.AuditTarget:
    return audit.AuditTarget("issuer", str(issuer.id))


def check_keys(algorithms: list[str], jwks_url: str, secret: str) -> None:
    """Reject a registration whose algorithms do not match its kind of key.

    A public key must never be usable as a shared secret, so a registration is either asymmetric
    with a key set, or symmetric with a secret; never both.
    """
    if bool(jwks_url) == bool(secret):
        raise _invalid("/jwks_url", "one_key_source", "Specify either jwks_url or secret.")
    fitting = ASYMMETRIC if jwks_url else SYMMETRIC
    if not all(name in fitting for name in algorithms):
        raise _invalid(
            "/algorithms", "wrong_algorithm", "Allowed with this kind of key: " + ", ".join(fitting)
        )
    if secret and len(secret.encode()) < MIN_SECRET_BYTES:
        raise _invalid("/secret", "too_short", f"At least {MIN_SECRET_BYTES} bytes are required.")
    if jwks_url:
        try:
            outbound_client().check(jwks_url)
        except OutboundError as error:
            raise _invalid("/jwks_url", "target_not_allowed", str(error)) from None


def _invalid(pointer: str, code: str, detail: str) -> InvalidBody:
    return InvalidBody(errors=[FieldProblem(pointer, code, detail)])


def do_create(principal: Principal, tenant: Tenant, values: IssuerValues) -> Issuer:
    """Register an issuer."""
    ensure_room(tenant, "issuers", Issuer.objects.all())
    secret = values["secret"]
    issuer = Issuer(
        tenant_id=tenant.id,
        name=values["name"],
        issuer=values["issuer"],
        audience=values["audience"],
        algorithms=values["algorithms"],
        jwks_url=values["jwks_url"],
        leeway_s=values["leeway_s"],
        max_token_age_s=values["max_token_age_s"],
    )
    if secret:
        issuer.sealed_secret = seal(secret.encode(), purpose=SEAL_PURPOSE, owner=str(issuer.id))
    try:
        with transaction.atomic():
            issuer.save(force_insert=True)
    except IntegrityError:
        raise NameTaken(
            "A token issuer with this name, or with this issuer and audience, already exists."
        ) from None
    audit.record(principal, "issuer.created", _target(issuer), after=describe(issuer))
    return issuer


def do_delete(principal: Principal, issuer: Issuer) -> None:
    """Stop trusting an issuer. Within a second, all processes reject its tokens and end the
    connections that they opened.
    """
    before, target = describe(issuer), _target(issuer)
    issuer.delete()
    audit.record(principal, "issuer.deleted", target, before=before)
