"""Settings for development: https://docs.djangoproject.com/en/stable/howto/deployment/checklist/."""

from os import environ
from pathlib import Path

from dotenv import load_dotenv

HERE = Path(__file__).resolve().parent
load_dotenv(HERE / ".env.local")

RILLBASE_URL = environ.get("RILLBASE_URL", "http://127.0.0.1:8080")
#: For pages. It permits only what the collection's access rules permit.
RILLBASE_PUBLISHABLE_KEY = environ.get("RILLBASE_PUBLISHABLE_KEY", "")
#: For the server alone.
RILLBASE_KEY = environ.get("RILLBASE_KEY", "")
RILLBASE_TOKEN_SECRET = environ.get("RILLBASE_TOKEN_SECRET", "")
RILLBASE_TOKEN_ISSUER = "https://tasks.example"

DEBUG = True
SECRET_KEY = environ.get("DJANGO_SECRET_KEY", "only for development")
ALLOWED_HOSTS = ["localhost", "127.0.0.1"]
ROOT_URLCONF = "urls"
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [HERE / "templates"],
        "OPTIONS": {"context_processors": ["django.template.context_processors.request"]},
    }
]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": HERE / "db.sqlite3"}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
LOGIN_REDIRECT_URL = "/"
USE_TZ = True
STATIC_URL = "/static/"
STATICFILES_DIRS = [
    HERE / "static",
    HERE.parent / "shared" / "public",
    ("rillbase", HERE.parents[1] / "sdk" / "js" / "dist"),
]
