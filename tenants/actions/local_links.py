"""Sign-in by a link that the launcher prints on its own terminal.

Anyone who can read that terminal can also read the installation's secrets, so the link reveals
nothing new. Even so, it works once, for a short time and from the same machine only, and does not
exist in production.
"""

from __future__ import annotations

from ipaddress import ip_address

from foundation.environment import environment
from foundation.errors import Forbidden
from foundation.request_context import client_address
from tenants import links
from tenants.models import Purpose, User


def do_issue(user: User) -> str:
    """Return a new link for a user."""
    return links.url(Purpose.SIGN_IN, links.issue(user.id, Purpose.SIGN_IN).id)


def do_redeem(token: str) -> User:
    """Use up a link and return the user it signs in, or raise why it is invalid."""
    proof = links.redeem(token, Purpose.SIGN_IN)
    links.use_up(proof)
    return proof.user


def are_accepted() -> bool:
    """Return whether this installation accepts printed links."""
    return environment().rillbase_env != "production"


def require_local_caller() -> None:
    """Raise unless the call comes from this machine and this is not a production installation."""
    if not are_accepted() or not _is_local(client_address.get()):
        raise Forbidden("Printed links sign in only on the machine that printed them.")


def _is_local(address: str) -> bool:
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    return (getattr(parsed, "ipv4_mapped", None) or parsed).is_loopback
