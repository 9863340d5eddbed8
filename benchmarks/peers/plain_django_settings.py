"""Settings of the bare peer: the same database and pool, nothing else."""

from __future__ import annotations

from urllib.parse import urlsplit

from foundation.environment import environment
from rillbase_server.settings import *  # noqa: F403 -- everything but what follows
from rillbase_server.settings import DATABASES

MIDDLEWARE: list[str] = []
ROOT_URLCONF = "benchmarks.peers.plain_django"
DATABASE_ROUTERS: list[str] = []
LOGGING_CONFIG = None

_superuser = urlsplit(environment().database_url)
DATABASES["owner"] = {
    **DATABASES["default"],
    "USER": _superuser.username or "",
    "PASSWORD": _superuser.password or "",
}
