"""What the examples say when they cannot run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.documents.collection import make_collection

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.timeout(120)


def test_an_example_names_a_collection_that_it_did_not_create(server: str) -> None:
    orders = make_collection(server, name="orders")
    argv = [sys.executable, "-m", "examples.browser", "shop", "--port", "0"]
    argv += ["--url", server, "--key", orders.account.admin_key]
    ran = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == 1
    assert "already has a collection 'orders'" in ran.stderr
    assert "origin" not in ran.stderr
