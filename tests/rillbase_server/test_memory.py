"""What every process would pay for, though few need it, is loaded by those who do."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
import django
django.setup()
from rillbase_server.celery import app
app.loader.import_default_modules()
heavy = {"kubernetes", "numpy", "pyarrow", "pyiceberg", "pyspark", "strawberry"}
print(*sorted(heavy & set(sys.modules)))
"""


def test_workers_load_nothing_that_works_on_columns_or_clusters() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True
    )
    assert ran.stdout.split() == []
