"""The compose file, read by the library with which Docker reads it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests import machine
from tests.images import compose

pytestmark = pytest.mark.kube


def test_the_compose_file_is_valid(tmp_path: Path) -> None:
    """Docker's own loader reads it: schema, references between services, volumes."""
    program = machine.compose()
    file = tmp_path / "compose.yaml"
    file.write_text(compose.interpolated(compose.FILE.read_text()))
    done = subprocess.run(
        [str(program), "-format", "json", str(file)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert set(json.loads(done.stdout)["services"]) == set(compose.services())
    broken = tmp_path / "broken.yaml"
    broken.write_text(file.read_text().replace("read_only: true", "read_only: {}"))
    assert subprocess.run([str(program), str(broken)], check=False, capture_output=True).returncode
