"""The PostgreSQL roles of the application, and how a process gets their passwords.

Five roles share one database. `rb_owner` owns the tables and migrates; the others own nothing,
so that row-level security binds them. Passwords derive from the installation's secret key:
every process that holds the secret can connect, and nothing needs to be stored or handed out.
"""

from __future__ import annotations

import hashlib
import hmac
from enum import StrEnum
from urllib.parse import quote, urlsplit, urlunsplit


class DatabaseRole(StrEnum):
    """A login role of the application; the value is its name in PostgreSQL."""

    OWNER = "rb_owner"
    APP = "rb_app"
    AUTH = "rb_auth"
    RELAY = "rb_relay"
    STAFF = "rb_staff"


#: Django's name for the connection that uses each role.
ALIASES: dict[str, DatabaseRole] = {
    "default": DatabaseRole.APP,
    "auth": DatabaseRole.AUTH,
    "relay": DatabaseRole.RELAY,
    "staff": DatabaseRole.STAFF,
    "owner": DatabaseRole.OWNER,
}


def role_password(secret: str, role: DatabaseRole) -> str:
    """Derive a role's password from the installation's secret key."""
    return hmac.new(
        secret.encode(), b"database-role:" + role.value.encode(), hashlib.sha256
    ).hexdigest()


def role_url(database_url: str, role: DatabaseRole, secret: str) -> str:
    """Return `database_url` with user and password of `role`."""
    if not database_url:
        raise ValueError(f"DATABASE_URL is not set, so the URL of {role} cannot be derived")
    parts = urlsplit(database_url)
    host = parts.netloc.rpartition("@")[2]
    netloc = f"{quote(role.value)}:{role_password(secret, role)}@{host}"
    return urlunsplit(parts._replace(netloc=netloc))
