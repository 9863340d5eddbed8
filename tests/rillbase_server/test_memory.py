"""Modules that few processes need are loaded only by those."""

from __future__ import annotations

import subprocess
import sys

import pytest

WORKERS = """
import django
django.setup()
from rillbase_server.celery import app
app.loader.import_default_modules()
"""
#: Everything that a server loads before its first request, including Django's views.
SERVER = """
import rillbase_server.asgi
from django.urls import get_resolver
get_resolver().url_patterns
"""
TELL = """
import sys
print(*sorted({heavy} & set(sys.modules)))
"""
COLUMNS = {"numpy", "pyarrow", "pyiceberg", "pyspark"}


@pytest.mark.parametrize(
    ("program", "heavy"),
    [(WORKERS, {*COLUMNS, "kubernetes", "strawberry"}), (SERVER, COLUMNS)],
    ids=["workers", "server"],
)
def test_libraries_for_columns_and_clusters_are_loaded_only_when_needed(
    program: str, heavy: set[str]
) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", program + TELL.format(heavy=heavy)],
        check=True,
        capture_output=True,
        text=True,
    )
    assert ran.stdout.splitlines()[-1].split() == []
