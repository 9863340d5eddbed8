"""The example of drivers and incidents runs as its help describes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

from tests.make import make_tenant

ROOT = Path(__file__).resolve().parents[3]
SVG = "{http://www.w3.org/2000/svg}"


def drive(server: str, key: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "examples.traffic", "--url", server, *arguments],
        cwd=ROOT,
        env={**os.environ, "RILLBASE_KEY": key},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )


def test_drivers_are_notified_and_a_picture_is_saved(server: str, tmp_path: Path) -> None:
    saved = tmp_path / "traffic.svg"
    run = drive(
        server,
        make_tenant(plan="dedicated").admin_key,
        *("--seconds", "5", "--every", "0.4", "--drivers", "4", "--picture", str(saved)),
    )
    assert (run.returncode, run.stderr) == (0, "")
    texts = [text.text or "" for text in ElementTree.parse(saved).iter(f"{SVG}text")]
    assert {"Ada", "Ben", "Cleo", "Dev"} <= set(texts)
    assert any("subscriptions" in text for text in texts)


def test_a_wrong_key_is_answered_in_a_line(server: str) -> None:
    run = drive(server, "rbk_dev_wrong", "--seconds", "1")
    assert run.returncode == 1
    assert len(run.stderr.splitlines()) == 1
