"""Signing in by a link that a start has printed on its own terminal.

Who can read that terminal can read the installation's secrets beside it, so the link gives nothing
away. It still is good for one use, for a short time and from the same machine only, and there is
none in production.
"""

from __future__ import annotations

from ipaddress import ip_address

from foundation.environment import environment
from foundation.errors import Forbidden
from foundation.request_context import client_address
from tenants import links
from tenants.models import User
from tenants.purposes import Purpose


def do_issue(user: User) -> str:
    """Return a new link for a user."""
    return links.url(Purpose.SIGN_IN, links.issue(user.id, Purpose.SIGN_IN).id)


def do_redeem(token: str) -> User:
    """Use a link up and return whom it signs in, or raise why it is not good."""
    proof = links.redeem(token, Purpose.SIGN_IN)
    links.use_up(proof)
    return proof.user


def refuse_from_elsewhere() -> None:
    """Raise unless the call comes from this machine, and the installation is no production."""
    if environment().rillbase_env == "production" or not _is_here(client_address.get()):
        raise Forbidden("Printed links sign in on the machine that printed them only.")


def _is_here(address: str) -> bool:
    try:
        found = ip_address(address)
    except ValueError:
        return False
    return (getattr(found, "ipv4_mapped", None) or found).is_loopback
