"""Authenticates the caller of an operation.

As in the data plane, but members may omit the tenant, since control-plane fields name it.
"""

from __future__ import annotations

from data_plane import calls
from data_plane.http import CallHead
from foundation import request_context
from foundation.limits import limiter
from tenants.credentials import act_as, authenticate
from tenants.credentials.authenticate import TENANT_HEADER
from tenants.credentials.facts import TenantFacts
from tenants.principals import Principal
from tenants.quotas import user_limits


async def authenticated(head: CallHead) -> tuple[Principal, TenantFacts | None]:
    """Return the caller and the tenant."""
    principal, tenant = await calls.counted(lambda: _look_up(head))
    if act_as.is_requested(head):
        principal = await calls.acting(principal, head)
    request_context.authenticated(principal.actor)
    if tenant is not None:
        request_context.tenant_id.set(str(tenant.id))
    return principal, tenant


def _look_up(head: CallHead) -> tuple[Principal, TenantFacts | None]:
    principal = authenticate.require(head)
    if principal.user_id is not None and not head.headers.get(TENANT_HEADER):
        return principal, None
    return authenticate.enter_data_plane(principal, head)


async def check_rate_limits(
    principal: Principal, tenant: TenantFacts | None, headers: dict[str, str]
) -> None:
    """Count an operation, or raise `RateLimited`."""
    if tenant is not None:
        await calls.check_rate_limits(principal, tenant, headers)
        return
    decision = await limiter().acheck(user_limits(str(principal.user_id)))
    headers.update(decision.headers())
    if not decision.allowed:
        raise decision.refusal()
