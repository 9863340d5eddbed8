"""Invitations to a tenant: create, resend, withdraw, accept."""

from __future__ import annotations

from uuid import UUID

from django.db import models
from django.utils import timezone

from foundation.api.rendering import timestamp
from foundation.environment import environment
from foundation.errors import Conflict, Forbidden, ResourceGone, TenantDeleted, TenantSuspended
from foundation.json_types import JsonObject
from tenants import audit, keys, links
from tenants.actions.accounts import insert
from tenants.actions.members import check_may_grant
from tenants.mail import LinkTo, MailTemplate, post
from tenants.models import Invitation, Membership, Purpose, Tenant, User
from tenants.principals import Principal, PrincipalKind
from tenants.quotas import ensure_room
from tenants.roles import Role


def describe(invitation: Invitation) -> JsonObject:
    """Return an invitation as it is audited."""
    inviter = invitation.invited_by
    expired = invitation.expires_at <= timezone.now()
    return {
        "id": str(invitation.id),
        "email": invitation.email,
        "role": invitation.role,
        "state": "expired" if expired else "open",
        "invited_by": inviter.email if inviter else None,
        "expires_at": timestamp(invitation.expires_at),
        "created_at": timestamp(invitation.created_at),
        "updated_at": timestamp(invitation.updated_at),
    }


def describe_for_admins(invitation: Invitation) -> JsonObject:
    """Return an invitation as the tenant's admins see it.

    They get its link only if this installation sends no mail, so that they can pass it on. In
    general it proves that its holder reads the mailbox.
    """
    described = describe(invitation)
    is_shown = described["state"] == "open" and not environment().sends_mail
    link = links.url(Purpose.INVITATION, invitation.id) if is_shown else None
    return {**described, "link": link}


def describe_for_invited(invitation: Invitation, *, has_account: bool) -> JsonObject:
    """Return an invitation as the holder of its link sees it."""
    inviter = invitation.invited_by
    return {
        "tenant": {"slug": invitation.tenant.slug, "name": invitation.tenant.name},
        "email": invitation.email,
        "role": invitation.role,
        "invited_by": (inviter.name or inviter.email) if inviter else None,
        "expires_at": timestamp(invitation.expires_at),
        "has_account": has_account,
    }


def open_invitations() -> models.QuerySet[Invitation]:
    """Return the unaccepted invitations of the tenant in scope, including expired ones."""
    return Invitation.objects.filter(accepted_at=None)


def _target(invitation: Invitation) -> audit.AuditTarget:
    return audit.AuditTarget("invitation", str(invitation.id))


def _quota_members() -> models.QuerySet[models.Model]:
    """Return what counts against the member quota: members and unexpired invitations."""
    promised = open_invitations().filter(expires_at__gt=timezone.now())
    return Membership.objects.only("pk").union(promised.only("pk"), all=True)


def do_invite(principal: Principal, tenant: Tenant, email: str, role: Role) -> Invitation:
    """Create an invitation and mail its link to the address."""
    check_may_grant(principal, role)
    ensure_room(tenant, "members", _quota_members())
    if Membership.objects.filter(user__email=email).exists():
        raise Conflict("A member already has this address.")
    existing = open_invitations().filter(email=email).first()
    if existing is not None and existing.expires_at > timezone.now():
        raise Conflict("The address has already been invited; resend that invitation.")
    if existing is not None:
        existing.delete()
    invitation = Invitation(
        tenant_id=tenant.id,
        email=email,
        role=role,
        invited_by_id=principal.user_id,
        expires_at=timezone.now() + links.LIFETIMES[Purpose.INVITATION],
    )
    invitation.token_hash = links.token_hash(Purpose.INVITATION, invitation.id)
    invitation.save(force_insert=True)
    _mail(principal, tenant, invitation)
    audit.record(principal, "invitation.created", _target(invitation), after=describe(invitation))
    return invitation


def do_resend(principal: Principal, tenant: Tenant, invitation: Invitation) -> None:
    """Mail the link again and restart its validity period. The caller holds the row lock."""
    check_may_grant(principal, Role(invitation.role))
    if invitation.expires_at <= timezone.now():
        ensure_room(tenant, "members", _quota_members())
    before = describe(invitation)
    invitation.expires_at = timezone.now() + links.LIFETIMES[Purpose.INVITATION]
    invitation.save_next_version()
    _mail(principal, tenant, invitation)
    audit.record(
        principal,
        "invitation.sent_again",
        _target(invitation),
        before=before,
        after=describe(invitation),
    )


def _mail(principal: Principal, tenant: Tenant, invitation: Invitation) -> None:
    post(
        MailTemplate.INVITATION,
        invitation.email,
        link=LinkTo(Purpose.INVITATION, invitation.id),
        tenant_id=tenant.id,
        tenant=tenant.name,
        inviter=principal.label if principal.user_id else f"An administrator of {tenant.name}",
        role=invitation.role,
    )


def do_withdraw(principal: Principal, invitation: Invitation) -> None:
    """Withdraw an invitation."""
    before, target = describe(invitation), _target(invitation)
    invitation.delete()
    audit.record(principal, "invitation.deleted", target, before=before)


def find_by_token(token: str) -> Invitation:
    """Return the invitation of a link, which may have been used or have expired."""
    invitation = (
        Invitation.unscoped.using("auth")
        .select_related("tenant", "invited_by")
        .filter(token_hash=keys.stored_hash(token))
        .first()
    )
    if invitation is None:
        raise links.unknown_token()
    return invitation


def check_usable(invitation: Invitation) -> None:
    """Raise unless the invitation can still be accepted."""
    if invitation.accepted_at is not None or invitation.expires_at <= timezone.now():
        raise ResourceGone(links.UNUSABLE)
    if invitation.tenant.state == Tenant.State.DELETING:
        raise TenantDeleted
    if invitation.tenant.state == Tenant.State.SUSPENDED:
        raise TenantSuspended


def has_account(email: str) -> bool:
    """Return whether an address has an account. Reveal this to the owner of its mailbox only."""
    return User.objects.using("auth").filter(email=email).exists()


def check_is_for(invitation: Invitation, email: str) -> None:
    """Raise unless the invitation was sent to this address."""
    if invitation.email != email:
        raise Forbidden(f"The invitation is for {invitation.email}; use that address.")


def do_accept(invitation: Invitation, user: User) -> None:
    """Make a user a member. Runs in the scope of the invitation's tenant and of the user.

    A user who has become a member in another way keeps that role.
    """
    check_is_for(invitation, user.email)
    _use_up(invitation.id)
    invited = Principal(
        kind=PrincipalKind.SESSION, credential_id=user.id, user_id=user.id, label=user.email
    )
    audit.record(invited, "invitation.accepted", _target(invitation))
    if not Membership.objects.filter(user_id=user.id).exists():
        Membership.objects.create(user_id=user.id, role=invitation.role)
        audit.record(
            invited,
            "member.added",
            audit.AuditTarget("member", str(user.id)),
            after={"user_id": str(user.id), "email": user.email, "role": invitation.role},
        )


def do_sign_up(invitation: Invitation, user: User) -> None:
    """Create an account with the membership that it was invited to, and sign the user in.

    Runs in the scope of the invitation's tenant and of the user. The holder of the link can read
    the mailbox, so the address counts as verified, and it is safe to report that an account already
    exists.
    """
    check_usable(invitation)
    check_is_for(invitation, user.email)
    user.email_verified_at = user.last_login = timezone.now()
    if not insert(user, using="default"):
        raise Conflict("An account with this address exists: sign in to accept.")
    do_accept(invitation, user)


def _use_up(invitation_id: UUID) -> None:
    """Mark the invitation accepted; of two concurrent calls, one is rejected."""
    row = (
        open_invitations()
        .select_for_update(of=("self",))
        .select_related("tenant")
        .filter(pk=invitation_id)
        .first()
    )
    if row is None:
        raise ResourceGone(links.UNUSABLE)
    check_usable(row)
    row.accepted_at = timezone.now()
    row.save_next_version()
