"""`Rillbase-Act-As`: an admin uses the data plane as one of the tenant's end users.

The header holds the claims of the user's token; an empty object means an anonymous end user. Access
rules then apply to the call, and each such call is in the audit log.
"""

from __future__ import annotations

from collections.abc import Mapping

from foundation.errors import FieldProblem, Forbidden, InvalidParameter, MalformedJson
from foundation.json_body import parse_json_body
from foundation.json_types import JsonObject, JsonValue
from foundation.request_context import RequestHead
from foundation.scope import scoped
from tenants.audit import AuditTarget, record
from tenants.principals import Principal, PrincipalKind
from tenants.roles import END_USER_SCOPES, Role

HEADER = "Rillbase-Act-As"
MAX_CHARS = 8_192
#: Longest prefix of a subject that fits the audit log's target.
MAX_TARGET_CHARS = 80


def is_requested(head: RequestHead) -> bool:
    """Return whether a call is made as another user."""
    return head.headers.get(HEADER) is not None


def refuse(head: RequestHead) -> None:
    """Raise where end users have no access: the call must not silently run as the admin."""
    if is_requested(head):
        raise Forbidden(
            f"{HEADER} is only accepted by the data plane; end users have no control plane."
        )


def as_end_user(principal: Principal, head: RequestHead) -> Principal:
    """Return the end user on whose behalf an admin's call runs, or raise why it may not."""
    principal.require_role(Role.ADMIN)
    claims = _claims(head.headers.get(HEADER, ""))
    subject = str(claims.get("sub", ""))[:MAX_TARGET_CHARS]
    with scoped(tenant_id=principal.tenant_id, user_id=principal.user_id):
        record(principal, "end_user.impersonated", AuditTarget("end_user", subject), after=claims)
    return impersonated(principal, claims)


def impersonated(principal: Principal, claims: Mapping[str, JsonValue]) -> Principal:
    """Return the end user with these claims, for impersonation by an admin."""
    principal.require_role(Role.ADMIN)
    return Principal(
        kind=PrincipalKind.END_USER if claims else PrincipalKind.PUBLISHABLE_KEY,
        credential_id=principal.credential_id,
        tenant_id=principal.tenant_id,
        tenant_slug=principal.tenant_slug,
        scopes=principal.scopes & END_USER_SCOPES,
        collections=principal.collections,
        label=str(claims.get("sub", "anonymous")),
        claims=claims,
    )


def _claims(text: str) -> JsonObject:
    """Read the claims as strictly as those of a token."""
    if len(text) > MAX_CHARS:
        raise _refusal(f"at most {MAX_CHARS} characters are accepted")
    try:
        # The server decodes header bytes as Latin-1.
        claims = parse_json_body(text.encode("latin-1"))
    except MalformedJson as error:
        raise _refusal(error.errors[0].detail) from None
    except UnicodeEncodeError:
        raise _refusal("the header is not valid") from None
    if not isinstance(claims, dict):
        raise _refusal("expected an object")
    return claims


def _refusal(reason: str) -> InvalidParameter:
    detail = f"A token's claims, a JSON object: {reason}."
    return InvalidParameter(errors=[FieldProblem(HEADER, "invalid", detail)])
