"""The ASGI application: Django behind the edge."""

from __future__ import annotations

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "rillbase_server.settings")

from django.core.asgi import get_asgi_application

application = get_asgi_application()
