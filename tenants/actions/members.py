"""Change members' roles and remove members."""

from __future__ import annotations

from foundation.api.rendering import timestamp
from foundation.errors import Forbidden, LastOwner
from foundation.json_types import JsonObject
from tenants import audit
from tenants.actions import tokens
from tenants.credentials.facts import forget_access
from tenants.models import Membership, Tenant
from tenants.principals import Principal
from tenants.roles import Role


def describe(membership: Membership) -> JsonObject:
    """Return a member as the API shows it. The caller has loaded the user."""
    return {
        "user_id": str(membership.user_id),
        "email": membership.user.email,
        "name": membership.user.name,
        "role": membership.role,
        "created_at": timestamp(membership.created_at),
        "updated_at": timestamp(membership.updated_at),
    }


def _target(membership: Membership) -> audit.AuditTarget:
    return audit.AuditTarget("member", str(membership.user_id))


def check_may_grant(principal: Principal, role: Role) -> None:
    """Raise `Forbidden` if the caller would grant or revoke a role above its own."""
    own = principal.control_role
    if own is None or not own.at_least(role):
        raise Forbidden(f"This requires the role {role} or a higher one.")


def _check_owner_remains(membership: Membership) -> None:
    """Raise `LastOwner` if the tenant would be left without an owner.

    The tenant's row is locked, so that two owners cannot step down concurrently.
    """
    if membership.role != Role.OWNER:
        return
    Tenant.objects.select_for_update().get(pk=membership.tenant_id)
    owners = Membership.objects.filter(role=Role.OWNER).exclude(pk=membership.pk)
    if not owners.exists():
        raise LastOwner


def do_change_role(principal: Principal, membership: Membership, role: Role) -> None:
    """Change a member's role."""
    check_may_grant(principal, role)
    check_may_grant(principal, Role(membership.role))
    if role is not Role.OWNER:
        _check_owner_remains(membership)
    before = describe(membership)
    membership.role = role
    membership.save_next_version()
    audit.record(
        principal,
        "member.role_changed",
        _target(membership),
        before=before,
        after=describe(membership),
    )
    forget_access(membership.user_id, principal.tenant_slug)


def do_remove(principal: Principal, membership: Membership) -> None:
    """Remove a member, possibly the caller itself."""
    leaving = membership.user_id == principal.user_id
    if not leaving:
        principal.require_role(Role.ADMIN)
        check_may_grant(principal, Role(membership.role))
    _check_owner_remains(membership)
    before = describe(membership)
    target = _target(membership)
    membership.delete()
    audit.record(principal, "member.left" if leaving else "member.removed", target, before=before)
    # Otherwise tokens for this tenant would work again if the user rejoined.
    tokens.do_revoke_all(principal, tokens.of_tenant(membership.tenant_id, membership.user_id))
    forget_access(membership.user_id, principal.tenant_slug)
