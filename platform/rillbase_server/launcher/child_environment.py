"""The environment of Rillbase's own processes.

The user's settings take precedence over the launcher's. Only ``prepare_database`` gets the
superuser's password: the others get the address, and log in with roles whose passwords they derive
from the secret key.
"""

import os
import socket
from collections.abc import Mapping
from urllib.parse import urlsplit, urlunsplit

from .options import REPOSITORY, UpOptions
from .secrets_file import Secrets

LOOPBACK_TARGETS = "RILLBASE_ALLOW_LOOPBACK_TARGETS"
DEFAULT_PLAN = "RILLBASE_DEFAULT_PLAN"
LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "::1"})
ADMINISTRATION = "DATABASE_URL"


def own_environment(
    options: UpOptions, secrets: Secrets, urls: Mapping[str, str]
) -> dict[str, str]:
    """Variables of web, worker and beat; `urls` maps variables to the servers' URLs."""
    own_variables = {
        "RILLBASE_ENV": "development",
        "RILLBASE_DATA_DIR": str(options.data_dir),
        "RILLBASE_SECRET_KEY": secrets.secret_key,
        "RILLBASE_KEY_PEPPER": secrets.key_pepper,
        "RILLBASE_HOSTS": ",".join(_hosts(options)),
        "RILLBASE_PUBLIC_URL": options.url,
        "RILLBASE_LOG_FORMAT": "json",
        **urls,
    }
    inherited = dict(os.environ)
    if allows_loopback_targets(options):
        own_variables[LOOPBACK_TARGETS] = "true"
    if _is_development():
        own_variables[DEFAULT_PLAN] = "unlimited"
    if options.verbose:
        own_variables["RILLBASE_LOG_LEVEL"] = "DEBUG"
    always = {
        ADMINISTRATION: without_login(urls[ADMINISTRATION]),
        "DJANGO_SETTINGS_MODULE": "rillbase_server.settings",
        "PYTHONPATH": _python_path(inherited),
        "PYTHONUNBUFFERED": "1",
    }
    return own_variables | inherited | always


def allows_loopback_targets(options: UpOptions) -> bool:
    """Return whether tenants may call this machine: the user's setting, or a default.


    Developers run receivers on the same machine. If others can reach the server, they could use it
    to probe local services, so the default is off.
    """
    setting = os.environ.get(LOOPBACK_TARGETS)
    if setting is not None:
        return setting.strip().lower() in {"1", "true", "yes", "on"}
    return _is_development() and options.host in LOOPBACK_HOSTS


def _is_development() -> bool:
    return os.environ.get("RILLBASE_ENV", "development") == "development"


def with_administration(environment: Mapping[str, str], database_url: str) -> dict[str, str]:
    """Variables of the process that creates roles and tables."""
    return {**environment, ADMINISTRATION: database_url}


def without_login(database_url: str) -> str:
    """A database's URL without user and password."""
    parts = urlsplit(database_url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _hosts(options: UpOptions) -> list[str]:
    hosts = ["localhost", "127.0.0.1", "[::1]"]
    if options.host not in LOOPBACK_HOSTS:
        hosts += [
            socket.gethostname(),
            f"[{options.host}]" if ":" in options.host else options.host,
        ]
    return list(dict.fromkeys(hosts))


def _python_path(variables: Mapping[str, str]) -> str:
    paths = [str(REPOSITORY), str(REPOSITORY / "platform"), variables.get("PYTHONPATH", "")]
    return os.pathsep.join(path for path in paths if path)
