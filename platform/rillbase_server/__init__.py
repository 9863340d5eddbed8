"""The Django project: settings, URLs, the ASGI edge, Celery, and the launcher of services."""
