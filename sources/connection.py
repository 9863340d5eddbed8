"""A source's connection URL, checked before any connection is made.

A tenant that may name any server could make this one access its internal network, read its files or
connect to something that is not a database. So a URL may contain only user, password, host, port,
database and TLS mode. Host names are resolved here, all addresses must be allowed, and the
connection uses these addresses; TLS still verifies the name. Nothing is read from the environment
or from files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network
from urllib.parse import parse_qsl, unquote, urlsplit
from uuid import UUID

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from foundation.environment import environment
from foundation.errors import FieldProblem, InvalidSource, SourceUnreachable
from foundation.outbound.addresses import is_plain_loopback, is_public, parse_address
from foundation.outbound.errors import OutboundError
from foundation.outbound.resolver import Resolver, resolve
from foundation.outbound.targets import DENIED_PORTS
from foundation.sealing import seal, unseal

PURPOSE = "source-connection"
MAX_URL_CHARS = 2048
DEFAULT_PORT = 5432
MAX_PORT = 65_535
MAX_ADDRESSES = 4
LOOKUP_TIMEOUT_S = 5.0
CONNECT_TIMEOUT_S = 5
#: Of the modes that a URL may request, only the last two authenticate the server.
TLS_MODES = ("disable", "prefer", "require", "verify-ca", "verify-full")

#: Overrides settings of the role and the database that affect how values are formatted, or that
#: hide rows silently.
SESSION_SETTINGS = " ".join(
    f"-c {name}={value}"
    for name, value in {
        "DateStyle": "ISO",
        "IntervalStyle": "postgres",
        "TimeZone": "UTC",
        "extra_float_digits": "1",
        "bytea_output": "hex",
        "row_security": "off",
        "search_path": "pg_catalog",
        "statement_timeout": "0",
        "idle_in_transaction_session_timeout": "0",
        "lock_timeout": "10s",
    }.items()
)


@dataclass(frozen=True, slots=True)
class DatabaseAddress:
    """A database, and the user and TLS mode to connect with."""

    host: str
    port: int
    database: str
    user: str
    password: str = field(repr=False)
    tls: str

    @property
    def shown(self) -> str:
        """The URL for display, without the password."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"postgresql://{self.user}@{host}:{self.port}/{self.database}?sslmode={self.tls}"


def _refuse(detail: str) -> InvalidSource:
    return InvalidSource(detail, errors=[FieldProblem("/connection", "invalid_connection", detail)])


def parse_target(url: str) -> DatabaseAddress:
    """Parse a URL, or raise `InvalidSource`."""
    if len(url) > MAX_URL_CHARS or not url.isprintable():
        raise _refuse("The connection must be a URL.")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or DEFAULT_PORT
        options = dict(parse_qsl(parts.query, strict_parsing=bool(parts.query)))
    except ValueError:
        raise _refuse("The connection must be a URL.") from None
    database = unquote(parts.path.removeprefix("/"))
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    if parts.scheme not in ("postgresql", "postgres") or not (host and user and database):
        raise _refuse(
            "The connection must have the form postgresql://user:password@host:5432/database."
        )
    if any(sign in host for sign in "/,\\ %"):
        raise _refuse("The connection must name one host.")
    tls = options.pop("sslmode", "require")
    if options or parts.fragment:
        raise _refuse("The only parameter allowed is sslmode.")
    if tls not in TLS_MODES:
        raise _refuse(f"sslmode must be one of {', '.join(TLS_MODES)}.")
    if port != DEFAULT_PORT and port in DENIED_PORTS:
        raise _refuse(f"Port {port} is not allowed.")
    return DatabaseAddress(host, port, database, user, password, tls)


def seal_url(url: str, owner: UUID) -> bytes:
    """Encrypt a connection URL for storage in the source's row."""
    return seal(url.encode(), purpose=PURPOSE, owner=str(owner))


def unseal_target(sealed: bytes, owner: UUID) -> DatabaseAddress:
    """Decrypt the result of `seal_url`."""
    return parse_target(unseal(sealed, purpose=PURPOSE, owner=str(owner)).decode())


def addresses(target: DatabaseAddress, resolver: Resolver = resolve) -> Sequence[str]:
    """Resolve the host and return its addresses if all of them are allowed."""
    try:
        resolved = resolver(target.host, target.port, LOOKUP_TIMEOUT_S)
    except OutboundError as error:
        raise SourceUnreachable(str(error)) from error
    settings = environment()
    allowed = all(
        may_be_called(
            address,
            allow_loopback=settings.rillbase_allow_loopback_targets,
            networks=settings.rillbase_source_networks,
        )
        for address in resolved
    )
    if not allowed:
        raise _refuse("The host is neither on the public internet nor in an allowed network.")
    return resolved[:MAX_ADDRESSES]


def may_be_called(
    text: str, *, allow_loopback: bool, networks: Sequence[IPv4Network | IPv6Network]
) -> bool:
    """Return whether an address is public, or in a network that this installation allows."""
    address = parse_address(text)
    if address is None:
        return False
    if is_plain_loopback(address) and allow_loopback:
        return True
    return is_public(address) or any(address in network for network in networks)


def is_internal(info: str) -> bool:
    """Return whether any address of a conninfo is not public; True if that is unknown."""
    texts = str(conninfo_to_dict(info).get("hostaddr", "")).split(",")
    parsed = (parse_address(text) for text in texts)
    return not all(address is not None and is_public(address) for address in parsed)


def conninfo(target: DatabaseAddress, ips: Sequence[str]) -> str:
    """Return the driver's conninfo: these addresses, and no settings from elsewhere."""
    return make_conninfo(
        "",
        host=",".join([target.host] * len(ips)),
        hostaddr=",".join(ips),
        port=",".join([str(target.port)] * len(ips)),
        user=target.user,
        password=target.password,
        dbname=target.database,
        sslmode=target.tls,
        passfile="/dev/null",
        gssencmode="disable",
        client_encoding="UTF8",
        application_name="rillbase",
        connect_timeout=CONNECT_TIMEOUT_S,
        options=SESSION_SETTINGS,
    )
