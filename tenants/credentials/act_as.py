"""`Rillbase-Act-As`: an admin sees the data plane as one of the tenant's end users does.

The header holds the claims of the user's token; an empty object is somebody who has not signed in.
The access rules then bind the call, and every one is in the audit log.
"""

from __future__ import annotations

import json

from foundation.errors import InvalidParameter
from foundation.json_types import JsonObject
from foundation.request_head import RequestHead
from foundation.scope import scoped
from tenants.audit import Target, record
from tenants.principals import Kind, Principal
from tenants.roles import Role

HEADER = "Rillbase-Act-As"
MAX_CHARS = 8_192
#: What an end user's key can carry at most.
SCOPES = frozenset({"documents:read", "documents:write", "realtime"})


def is_asked(head: RequestHead) -> bool:
    """Tell whether a call is made as somebody else."""
    return head.headers.get(HEADER) is not None


def as_end_user(principal: Principal, head: RequestHead) -> Principal:
    """Return the end user that an admin's call is made as, or raise that it may not."""
    principal.require_role(Role.ADMIN)
    claims = _claims(head.headers.get(HEADER, ""))
    subject = str(claims.get("sub", ""))
    with scoped(tenant_id=principal.tenant_id, user_id=principal.user_id):
        record(principal, "end_user.impersonated", Target("end_user", subject), after=claims)
    return Principal(
        kind=Kind.END_USER if claims else Kind.PUBLISHABLE_KEY,
        credential_id=principal.credential_id,
        tenant_id=principal.tenant_id,
        tenant_slug=principal.tenant_slug,
        scopes=principal.scopes & SCOPES,
        collections=principal.collections,
        label=subject or "anonymous",
        claims=claims,
    )


def _claims(text: str) -> JsonObject:
    try:
        claims = json.loads(text) if len(text) <= MAX_CHARS else None
    except (ValueError, RecursionError):
        claims = None
    if not isinstance(claims, dict):
        raise InvalidParameter(
            f"{HEADER} holds a token's claims: a JSON object of at most {MAX_CHARS} characters."
        )
    return claims
