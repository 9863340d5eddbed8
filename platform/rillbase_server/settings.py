"""Django's settings, derived from the typed environment, which alone reads `os.environ`."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from foundation.database_roles import ALIASES, DatabaseRole
from foundation.environment import environment
from foundation.server_messages import LAYER, layer_settings
from rillbase_server.console import is_immutable
from rillbase_server.version import VERSION

API_DESCRIPTION = """\
Rillbase is a multi-tenant, real-time database as a service.

The **control plane** (`/api/v1`) manages tenants, members, keys and webhooks; call it with a
console session, a personal token (`rbt_…`) or an API key with the scope `admin`. The
**data plane** (`/v1`) is for applications; call it with an API key.

Errors are problem documents (RFC 9457) with a stable `code`. Lists are paged with opaque cursors.
Calls that change something accept an `Idempotency-Key`, and `If-Match` with the ETag of the
version that you read.
"""

BASE_DIR = Path(__file__).resolve().parents[2]
ENV = environment()

SECRET_KEY = ENV.rillbase_secret_key.get_secret_value()
DEBUG = ENV.rillbase_debug
ALLOWED_HOSTS = ENV.rillbase_hosts
CSRF_TRUSTED_ORIGINS = [ENV.rillbase_public_url.rstrip("/")]

CHANNEL_LAYERS = {LAYER: layer_settings(ENV.events)}

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
    "foundation",
    "tenants",
    "storage_engine",
    "documents",
    "realtime",
    "aggregates",
    "analytics",
    "sources",
    "rillbase_server",
]

#: API requests use none of Django's session middleware; the staff admin has a separate chain.
MIDDLEWARE = [
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "rillbase_server.staff.middleware.StaffMiddleware",
]
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


def _database(role: DatabaseRole) -> dict[str, object]:
    """Convert a role's URL to Django's settings."""
    parts = urlsplit(ENV.role_url(role))
    options: dict[str, object] = dict(parse_qsl(parts.query))
    settings = dict(_SERVER_SETTINGS)
    if role is DatabaseRole.OWNER:
        settings["statement_timeout"] = "0"
    else:
        options["pool"] = {
            "min_size": 1,
            "max_size": ENV.rillbase_database_pool_size,
            "timeout": 5,
            "max_idle": 300,
            # Maximum backoff of the pool in seconds. With the default of five minutes, requests
            # would keep failing long after an outage of the database.
            "reconnect_timeout": 4,
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
        # `foundation.scope` retries if a pooled connection is dead, which is free otherwise;
        # queries outside scopes are rare enough to check connections first.
        "CONN_HEALTH_CHECKS": role is not DatabaseRole.APP,
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
CONSOLE_DIR = BASE_DIR / "console" / "dist"
SITE_DIR = BASE_DIR / "site"
#: Builds of TypeScript: the console, and the SDK for pages without a bundler.
STATICFILES_DIRS = [
    (name, folder)
    for name, folder in (("console", CONSOLE_DIR), ("sdk", BASE_DIR / "sdk" / "js" / "dist"))
    if folder.exists()
]
#: Static files are served from their packages, without collecting them.
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = False
WHITENOISE_MAX_AGE = 3600
WHITENOISE_IMMUTABLE_FILE_TEST = is_immutable

#: The edge limits bodies while they stream; Django's limits apply to the staff admin's forms.
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
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
    "EXCEPTION_HANDLER": "foundation.api.problems.handle_exception",
    "URL_FORMAT_OVERRIDE": None,
}

SPECTACULAR_SETTINGS = {
    "TITLE": "Rillbase",
    "VERSION": VERSION,
    "OAS_VERSION": "3.1.0",
    "DESCRIPTION": API_DESCRIPTION,
    "LICENSE": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
    "SCHEMA_PATH_PREFIX": r"/(api/)?v1",
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "documents.api.operations.add_to_openapi",
        "realtime.api.operations.add_to_openapi",
        "storage_engine.topics.api.operations.add_to_openapi",
        "storage_engine.topics.live.api.add_to_openapi",
        "aggregates.api.operations.add_to_openapi",
        "aggregates.live.event_stream.add_to_openapi",
        "analytics.api.operations.add_to_openapi",
        "analytics.api.iceberg_operations.add_to_openapi",
        "foundation.api.openapi.add_common_parts",
    ],
    "COMPONENT_SPLIT_REQUEST": True,
    "ENUM_NAME_OVERRIDES": {
        "RoleEnum": "tenants.api.members.ROLES",
        "KeyKindEnum": "tenants.models.ApiKey.Kind",
        "KeyStateEnum": "tenants.actions.api_keys.STATES",
        "TenantStateEnum": "tenants.models.Tenant.State",
        "WebhookStateEnum": "tenants.models.Webhook.State",
        "DeliveryStateEnum": "tenants.models.WebhookDelivery.State",
        "PrincipalKindEnum": "tenants.principals.KINDS",
        "TopicKindEnum": "storage_engine.models.Topic.Kind",
        "RequestKindEnum": "tenants.request_log.recorder.KINDS",
        "SavedQueryKindEnum": "tenants.models.SavedQuery.Kind",
        "ChartTypeEnum": "tenants.api.saved_queries.CHARTS",
        "DeclaredTechniqueEnum": "documents.technique.DECLARED_TECHNIQUES",
        "MoveStateEnum": "documents.collections.views.MOVE_STATES",
        "TechniqueEnum": "documents.technique.TECHNIQUES",
        "TypeEnum": "aggregates.definitions.measures.TYPES",
    },
    "TAGS": [
        {"name": name}
        for name in (
            "Data plane",
            "Documents",
            "Collections",
            "Topics",
            "Aggregates",
            "Tenants",
            "Members",
            "Invitations",
            "API keys",
            "Token issuers",
            "Quota and usage",
            "Webhooks",
            "Audit log",
            "Error log",
            "Request log",
            "Saved queries",
            "Overview",
        )
    ],
}

UNFOLD = {
    "SITE_TITLE": "Rillbase staff",
    "SITE_HEADER": "Rillbase",
    "SITE_SUBHEADER": "Staff admin",
    "SITE_URL": "/",
    "SITE_ICON": "/static/rillbase/mark.svg",
    "SITE_FAVICONS": [
        {"rel": "icon", "type": "image/svg+xml", "href": "/static/rillbase/mark.svg"}
    ],
    "SHOW_HISTORY": False,
    "COLORS": {
        "primary": {
            "50": "#effafa",
            "100": "#d5f1f2",
            "200": "#afe3e6",
            "300": "#79ced5",
            "400": "#3cb0bc",
            "500": "#2194a2",
            "600": "#0b6f86",
            "700": "#13606f",
            "800": "#174f5c",
            "900": "#17424e",
            "950": "#092b35",
        }
    },
    "SHOW_VIEW_ON_SITE": False,
}
