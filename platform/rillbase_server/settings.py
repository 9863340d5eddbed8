"""Django's settings, derived from the typed environment. Nothing reads `os.environ` but that."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from foundation.database_roles import ALIASES, Role
from foundation.environment import environment

BASE_DIR = Path(__file__).resolve().parents[2]
ENV = environment()

SECRET_KEY = ENV.rillbase_secret_key.get_secret_value()
DEBUG = ENV.rillbase_debug
ALLOWED_HOSTS = ENV.rillbase_hosts
CSRF_TRUSTED_ORIGINS = [ENV.rillbase_public_url.rstrip("/")]

INSTALLED_APPS = [
    "unfold",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "foundation",
    "tenants",
    "rillbase_server",
]

#: API requests pass none of Django's session machinery; the staff admin has its own chain.
MIDDLEWARE = ["rillbase_server.staff.middleware.StaffMiddleware"]
SILENCED_SYSTEM_CHECKS = ["admin.E408", "admin.E409", "admin.E410"]

ROOT_URLCONF = "rillbase_server.urls"
ASGI_APPLICATION = "rillbase_server.asgi.application"
APPEND_SLASH = False

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [Path(__file__).parent / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

_SERVER_SETTINGS = {
    "statement_timeout": "30s",
    "lock_timeout": "2s",
    "idle_in_transaction_session_timeout": "60s",
}


def _database(role: Role) -> dict[str, object]:
    """Translate a role's URL into Django's terms."""
    parts = urlsplit(ENV.role_url(role))
    options: dict[str, object] = dict(parse_qsl(parts.query))
    settings = dict(_SERVER_SETTINGS)
    if role is Role.OWNER:
        settings["statement_timeout"] = "0"
    else:
        options["pool"] = {
            "min_size": 1,
            "max_size": ENV.rillbase_database_pool_size,
            "timeout": 5,
            "max_idle": 300,
        }
    options["options"] = " ".join(f"-c {name}={value}" for name, value in settings.items())
    options["application_name"] = f"rillbase:{role.value}"
    options["connect_timeout"] = 5
    return {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": parts.hostname or "",
        "PORT": str(parts.port or 5432),
        "NAME": parts.path.lstrip("/"),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "CONN_MAX_AGE": 0,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": options,
    }


DATABASES = {alias: _database(role) for alias, role in ALIASES.items()}
DATABASE_ROUTERS = ["rillbase_server.routers.RoleRouter"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_USER_MODEL = "tenants.User"
AUTHENTICATION_BACKENDS = ["rillbase_server.staff.backend.StaffBackend"]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 10},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]

_SECURE = ENV.rillbase_public_url.startswith("https://")
SESSION_COOKIE_NAME = "rillbase_staff_session"
SESSION_COOKIE_PATH = "/staff/"
SESSION_COOKIE_SECURE = _SECURE
SESSION_COOKIE_SAMESITE = "Strict"
SESSION_COOKIE_AGE = 8 * 3600
CSRF_COOKIE_NAME = "rillbase_staff_csrf"
CSRF_COOKIE_PATH = "/staff/"
CSRF_COOKIE_SECURE = _SECURE
CSRF_COOKIE_SAMESITE = "Strict"

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_I18N = False
USE_TZ = True

STATIC_URL = "/static/"
STATIC_ROOT = BASE_DIR / ".rillbase-static"

#: The edge bounds bodies while they stream; Django's own limits are for forms of the staff admin.
DATA_UPLOAD_MAX_MEMORY_SIZE = ENV.rillbase_body_max_bytes
DATA_UPLOAD_MAX_NUMBER_FIELDS = 1000

LOGGING_CONFIG = None

REST_FRAMEWORK = {
    "UNAUTHENTICATED_USER": None,
    "DEFAULT_AUTHENTICATION_CLASSES": [],
    "DEFAULT_PERMISSION_CLASSES": [],
    "DEFAULT_RENDERER_CLASSES": ["foundation.api.rendering.JsonRenderer"],
    "DEFAULT_PARSER_CLASSES": ["foundation.api.bodies.StrictJsonParser"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "foundation.api.problems.handle_exception",
    "URL_FORMAT_OVERRIDE": None,
}
