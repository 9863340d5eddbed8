"""The example of application monitoring."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.aggregates.aggregate_client import AggregateClient, make_aggregate
from tests.make import make_tenant

ROOT = Path(__file__).resolve().parents[2]


def run(server: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "examples.apm", "--url", server, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_requests_are_counted_and_drawn(server: str, tmp_path: Path) -> None:
    account, picture = make_tenant(plan="dedicated"), tmp_path / "apm.svg"
    arguments = ["--hours", "1", "--speed", "3000", "--seconds", "2.5", "--picture", str(picture)]
    ran = run(server, "--key", account.admin_key, *arguments)
    assert ran.returncode == 0, ran.stderr
    counts = re.search(r"(\d+) events, (\d+) row updates", ran.stdout)
    assert counts is not None
    assert int(counts[1]) > 100
    drawn = picture.read_text()
    assert "acme/shop/cart" in drawn
    assert "cumulus/mail/search" in drawn


def test_a_rejection_is_reported(server: str, requests_5m: AggregateClient) -> None:
    ran = run(server, "--key", "rbk_dev_nonsense", "--seconds", "1")
    assert ran.returncode == 1
    assert "Rillbase at" in ran.stderr
    # It exists already, for other events.
    other = make_aggregate(server, dimensions=["customer"], rollups=[])
    key = other.caller.headers["Authorization"].removeprefix("Bearer ")
    ran = run(server, "--key", key, "--seconds", "30")
    assert ran.returncode == 1
    assert ran.stderr
