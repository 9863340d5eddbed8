"""Settings of the bare Django peer: the same database and pool, nothing else."""

from __future__ import annotations

from urllib.parse import urlsplit

from foundation.environment import environment
from rillbase_server import settings as full

SECRET_KEY = full.SECRET_KEY
ALLOWED_HOSTS = full.ALLOWED_HOSTS
INSTALLED_APPS = full.INSTALLED_APPS
AUTH_USER_MODEL = full.AUTH_USER_MODEL
TEMPLATES = full.TEMPLATES
USE_TZ = full.USE_TZ
ROOT_URLCONF = "benchmarks.peers.plain_django"
LOGGING_CONFIG = None

_superuser = urlsplit(environment().database_url)
DATABASES = {
    **full.DATABASES,
    "owner": {
        **full.DATABASES["default"],
        "USER": _superuser.username or "",
        "PASSWORD": _superuser.password or "",
    },
}
